-- PReLU: relu with a learned slope below 0, one for all channels or one each.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"

---@class ampl.nn.PReLU : ampl.nn.Module
---@field weight ampl.Tensor (num_parameters)
local PReLU = Module:define("PReLU", {
  {"num_parameters", "integer", 1, min = 1}, {"init", "number", 0.25}, {"device", "device?"}, {"dtype", "dtype?"},
})

function PReLU:init(...)
  local o = self:options(...)
  self.num_parameters = o.num_parameters
  local how = {dtype = o.dtype or "f32", device = o.device, requires_grad = true}
  self.weight = core.full({o.num_parameters}, o.init, how)
end

function PReLU:forward(x)
  return F.prelu(x, self.weight)
end

return PReLU
