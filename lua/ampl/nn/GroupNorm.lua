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
  {"num_groups", "integer"}, {"num_channels", "integer"}, {"eps", "number", 1e-5}, {"affine", "boolean", true},
  {"device", "string?"}, {"dtype", "string?"},
})

function GroupNorm:init(...)
  local o = self:options(...)
  if o.num_groups < 1 or o.num_channels % o.num_groups ~= 0 then
    raise("EVALUE", self.name, ("%d channels cannot be cut into %d groups"):format(o.num_channels, o.num_groups))
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
