-- LayerNorm: normalises the last dimensions of each sample.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"

---@class ampl.nn.LayerNorm : ampl.nn.Module
---@field weight ampl.Tensor?
---@field bias ampl.Tensor?
local LayerNorm = Module:define("LayerNorm", {
  {"normalized_shape", "size", min = 0, filled = true}, {"eps", "number", 1e-5, min = 0},
  {"elementwise_affine", "boolean", true}, {"bias", "boolean", true}, {"device", "device?"}, {"dtype", "dtype?"},
})

function LayerNorm:init(...)
  local o = self:options(...)
  self.normalized_shape = type(o.normalized_shape) == "table" and o.normalized_shape or {o.normalized_shape}
  self.eps = o.eps
  if not o.elementwise_affine then return end
  local how = {dtype = o.dtype, device = o.device}
  self.weight = core.ones(self.normalized_shape, how):requires_grad_(true)
  if o.bias then self.bias = core.zeros(self.normalized_shape, how):requires_grad_(true) end
end

function LayerNorm:reset_parameters()
  if self.weight then init.ones_(self.weight) end
  if self.bias then init.zeros_(self.bias) end
end

function LayerNorm:forward(x)
  return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
end

return LayerNorm
