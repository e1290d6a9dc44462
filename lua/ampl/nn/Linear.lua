-- Linear: y = x W^T + b.

local core = require "ampl.core"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"
local linear = require "ampl.nn.functional".linear

---@class ampl.nn.Linear : ampl.nn.Module
---@field weight ampl.Tensor (out_features, in_features)
---@field bias ampl.Tensor? (out_features)
local Linear = Module:define("Linear", {
  {"in_features", "integer", min = 0}, {"out_features", "integer", min = 0}, {"bias", "boolean", true},
  {"device", "device?"}, {"dtype", "dtype?"},
})

function Linear:init(...)
  local o = self:options(...)
  self.in_features, self.out_features = o.in_features, o.out_features
  local how = {dtype = o.dtype, device = o.device, requires_grad = true}
  self.weight = core.empty({o.out_features, o.in_features}, how)
  if o.bias then self.bias = core.empty({o.out_features}, how) end
  self:reset_parameters()
end

---Draws the parameters anew, as PyTorch does.
function Linear:reset_parameters()
  init.by_fan_in(self.weight, self.bias)
end

function Linear:forward(x)
  return linear(x, self.weight, self.bias)
end

return Linear
