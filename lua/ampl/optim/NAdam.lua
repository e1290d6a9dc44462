-- NAdam (Dozat 2016): Adam with Nesterov's momentum.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.NAdam : ampl.optim.Optimizer
return Optimizer:define("NAdam", {
  params = {
    option("lr", 2e-3), option("betas", {0.9, 0.999}), option("eps", 1e-8),
    option("weight_decay", 0.0),
    option("momentum_decay", 4e-3), {"decoupled_weight_decay", "boolean", false}, {"maximize", "boolean", false},
  },
  op = "nadam_step",
  states = function() return {"exp_avg", "exp_avg_sq"} end,
  counts = {{"step", 0}, {"mu_product", 1}},
  options = function(group)
    return {beta1 = group.betas[1], beta2 = group.betas[2], eps = group.eps, momentum_decay = group.momentum_decay,
            decoupled = group.decoupled_weight_decay}
  end,
})
