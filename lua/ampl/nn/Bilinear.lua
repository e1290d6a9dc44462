-- Bilinear: y[k] = x1 W[k] x2 + b[k].

local core = require "ampl.core"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"
local bilinear = require "ampl.nn.functional".bilinear

---@class ampl.nn.Bilinear : ampl.nn.Module
---@field weight ampl.Tensor (out_features, in1_features, in2_features)
---@field bias ampl.Tensor? (out_features)
local Bilinear = Module:define("Bilinear", {
  {"in1_features", "integer"}, {"in2_features", "integer"}, {"out_features", "integer"}, {"bias", "boolean", true},
  {"device", "string?"}, {"dtype", "string?"},
})

function Bilinear:init(...)
  local o = self:options(...)
  self.in1_features, self.in2_features, self.out_features = o.in1_features, o.in2_features, o.out_features
  local how = {dtype = o.dtype, device = o.device, requires_grad = true}
  self.weight = core.empty({o.out_features, o.in1_features, o.in2_features}, how)
  if o.bias then self.bias = core.empty({o.out_features}, how) end
  self:reset_parameters()
end

---Draws the parameters anew, as PyTorch does.
function Bilinear:reset_parameters()
  local bound = 1 / math.sqrt(self.in1_features)
  init.uniform_(self.weight, -bound, bound)
  if self.bias then init.uniform_(self.bias, -bound, bound) end
end

function Bilinear:forward(x1, x2)
  return bilinear(x1, x2, self.weight, self.bias)
end

return Bilinear
