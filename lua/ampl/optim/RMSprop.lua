-- RMSprop (Hinton 2012): the gradient over the root of its mean square.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.RMSprop : ampl.optim.Optimizer
return Optimizer:define("RMSprop", {
  params = {
    option("lr", 1e-2), option("alpha", 0.99), option("eps", 1e-8), option("weight_decay", 0.0),
    option("momentum", 0.0), {"centered", "boolean", false}, {"maximize", "boolean", false},
  },
  op = "rmsprop_step",
  states = function(group)
    local names = {"square_avg"}
    if group.centered then names[#names + 1] = "grad_avg" end
    if group.momentum ~= 0 then names[#names + 1] = "momentum_buffer" end
    return names
  end,
  counts = {{"step", 0}},
  options = function(group)
    return {alpha = group.alpha, eps = group.eps, momentum = group.momentum, centered = group.centered}
  end,
})
