-- RMSprop (Hinton 2012): the gradient over the root of its mean square.

local Optimizer = require "ampl.optim.Optimizer"

---@class ampl.optim.RMSprop : ampl.optim.Optimizer
return Optimizer:define("RMSprop", {
  params = {
    {"lr", "number", 1e-2}, {"alpha", "number", 0.99}, {"eps", "number", 1e-8}, {"weight_decay", "number", 0.0},
    {"momentum", "number", 0.0}, {"centered", "boolean", false}, {"maximize", "boolean", false},
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
