-- mlp: Linear, activation, Linear, ..., Linear.
--
--   local model = ampl.models.mlp{sizes = {784, 128, 10}}          -- names 0.weight 0.bias 2.weight ...

local F = require "ampl.nn.functional"
local Linear = require "ampl.nn.Linear"
local Module = require "ampl.nn.Module"
local Sequential = require "ampl.nn.Sequential"
local args = require "ampl.args"
local raise = require "ampl.raise"

local signature = args.signature("mlp", {{"sizes", "size"}, {"activation", "string", "relu"}})

-- An activation as a module without parameters.
local Activation = Module:extend("Activation")

function Activation:init(name) self.op = F[name] or raise("EARG", "mlp", "no activation " .. args.shown(name)) end
function Activation:forward(x) return self.op(x) end

---@param options {sizes: integer[], activation: string}
---@return ampl.nn.Sequential
return function(options)
  local o = signature(options)
  if type(o.sizes) ~= "table" or #o.sizes < 2 then raise("EARG", "mlp", "sizes is a list of at least 2 numbers") end
  local model = Sequential()
  for i = 1, #o.sizes - 1 do
    if i > 1 then model:append(Activation(o.activation)) end
    model:append(Linear(o.sizes[i], o.sizes[i + 1]))
  end
  return model
end
