-- SGD: stochastic gradient descent with momentum.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"
local raise = require "ampl.raise"

---@class ampl.optim.SGD : ampl.optim.Optimizer
return Optimizer:define("SGD", {
  params = {
    option("lr", 1e-3), option("momentum", 0.0), {"dampening", "number", 0.0}, option("weight_decay", 0.0),
    {"nesterov", "boolean", false}, {"maximize", "boolean", false},
  },
  op = "sgd_step",
  states = function(group) return group.momentum ~= 0 and {"momentum_buffer"} or {} end,
  first = {first = true},                               -- a new buffer takes the gradient as it is
  options = function(group)
    return {momentum = group.momentum, dampening = group.dampening, nesterov = group.nesterov}
  end,
  check = function(name, group)
    if group.nesterov and (group.momentum == 0 or group.dampening ~= 0) then
      raise("EVALUE", name, "nesterov needs a momentum, and no dampening")
    end
  end,
})
