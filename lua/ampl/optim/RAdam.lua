-- RAdam (Liu et al. 2020): Adam that waits for the second moment to be known before it divides by it.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.RAdam : ampl.optim.Optimizer
return Optimizer:define("RAdam", {
  params = {
    option("lr", 1e-3), option("betas", {0.9, 0.999}), option("eps", 1e-8),
    option("weight_decay", 0.0),
    {"decoupled_weight_decay", "boolean", false}, {"maximize", "boolean", false},
  },
  op = "radam_step",
  states = function() return {"exp_avg", "exp_avg_sq"} end,
  counts = {{"step", 0}},
  options = function(group)
    return {beta1 = group.betas[1], beta2 = group.betas[2], eps = group.eps, decoupled = group.decoupled_weight_decay}
  end,
})
