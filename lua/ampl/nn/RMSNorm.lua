-- RMSNorm: divides the last dimensions of each sample by their root mean square.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"

---@class ampl.nn.RMSNorm : ampl.nn.Module
---@field weight ampl.Tensor?
local RMSNorm = Module:define("RMSNorm", {
  {"normalized_shape", "size", min = 0, filled = true}, {"eps", "number?", min = 0},
  {"elementwise_affine", "boolean", true}, {"device", "device?"}, {"dtype", "dtype?"},
})

---Without eps it is the spacing at 1 of the input's dtype.
function RMSNorm:init(...)
  local o = self:options(...)
  self.normalized_shape = type(o.normalized_shape) == "table" and o.normalized_shape or {o.normalized_shape}
  self.eps = o.eps
  if o.elementwise_affine then
    self.weight = core.ones(self.normalized_shape, {dtype = o.dtype, device = o.device}):requires_grad_(true)
  end
end

function RMSNorm:reset_parameters()
  if self.weight then init.ones_(self.weight) end
end

function RMSNorm:forward(x)
  return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)
end

return RMSNorm
