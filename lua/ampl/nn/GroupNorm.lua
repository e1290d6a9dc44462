-- GroupNorm: normalises groups of channels of each sample.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"
local raise = require "ampl.raise"

---@class ampl.nn.GroupNorm : ampl.nn.Module
---@field weight ampl.Tensor?
---@field bias ampl.Tensor?
local GroupNorm = Module:define("GroupNorm", {
  {"num_groups", "integer", min = 1}, {"num_channels", "integer", min = 0}, {"eps", "number", 1e-5, min = 0},
  {"affine", "boolean", true}, {"device", "device?"}, {"dtype", "dtype?"},
})

function GroupNorm:init(...)
  local o = self:options(...)
  if o.num_channels % o.num_groups ~= 0 then
    raise("EVALUE", self.name, ("num_channels %d cannot be cut into num_groups %d"):format(
      o.num_channels, o.num_groups))
  end
  self.num_groups, self.num_channels, self.eps = o.num_groups, o.num_channels, o.eps
  if not o.affine then return end
  local how = {dtype = o.dtype, device = o.device}
  self.weight = core.ones({o.num_channels}, how):requires_grad_(true)
  self.bias = core.zeros({o.num_channels}, how):requires_grad_(true)
end

function GroupNorm:reset_parameters()
  if self.weight then
    init.ones_(self.weight)
    init.zeros_(self.bias)
  end
end

function GroupNorm:forward(x)
  return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)
end

return GroupNorm
