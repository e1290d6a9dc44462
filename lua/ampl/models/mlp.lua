-- mlp: Linear, activation, Linear, ..., Linear.
--
--   local model = ampl.models.mlp{sizes = {784, 128, 10}}          -- names 0.weight 0.bias 2.weight ...

local F = require "ampl.nn.functional"
local Linear = require "ampl.nn.Linear"
local Module = require "ampl.nn.Module"
local Sequential = require "ampl.nn.Sequential"
local args = require "ampl.args"
local raise = require "ampl.raise"

-- An activation as a module without parameters.
local Activation = Module:extend("Activation")

function Activation:init(f)
  self.op = type(f) == "function" and f or F[f] or raise("EARG", "mlp", "there is no activation " .. args.shown(f))
end
function Activation:forward(x) return self.op(x) end

---@param options {sizes: integer[], activation: string}
---@return ampl.nn.Sequential
return args.declare("mlp", {{"sizes", "integer_list", min = 0}, {"activation", "activation", "relu"}}, function(o)
  if #o.sizes < 2 then raise("EARG", "mlp", ("sizes must hold at least 2 numbers, not %d"):format(#o.sizes)) end
  local model = Sequential()
  for i = 1, #o.sizes - 1 do
    if i > 1 then model:append(Activation(o.activation)) end
    model:append(Linear(o.sizes[i], o.sizes[i + 1]))
  end
  return model
end)
