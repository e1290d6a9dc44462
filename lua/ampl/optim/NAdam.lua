-- NAdam (Dozat 2016): Adam with Nesterov's momentum.

local Optimizer = require "ampl.optim.Optimizer"

---@class ampl.optim.NAdam : ampl.optim.Optimizer
return Optimizer:define("NAdam", {
  params = {
    {"lr", "number", 2e-3}, {"betas", "numbers", {0.9, 0.999}}, {"eps", "number", 1e-8},
    {"weight_decay", "number", 0.0},
    {"momentum_decay", "number", 4e-3}, {"decoupled_weight_decay", "boolean", false}, {"maximize", "boolean", false},
  },
  op = "nadam_step",
  states = function() return {"exp_avg", "exp_avg_sq"} end,
  counts = {{"step", 0}, {"mu_product", 1}},
  options = function(group)
    return {beta1 = group.betas[1], beta2 = group.betas[2], eps = group.eps, momentum_decay = group.momentum_decay,
            decoupled = group.decoupled_weight_decay}
  end,
})
