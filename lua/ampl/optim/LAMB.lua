-- LAMB (You et al. 2020): Adam whose steps are as long as the parameter is large, tensor by tensor.

local Optimizer = require "ampl.optim.Optimizer"

---@class ampl.optim.LAMB : ampl.optim.Optimizer
return Optimizer:define("LAMB", {
  params = {
    {"lr", "number", 1e-3}, {"betas", "numbers", {0.9, 0.999}}, {"eps", "number", 1e-6},
    {"weight_decay", "number", 0.0},
    {"maximize", "boolean", false},
  },
  op = "lamb_step",
  states = function() return {"exp_avg", "exp_avg_sq"} end,
  counts = {{"step", 0}},
  options = function(group) return {beta1 = group.betas[1], beta2 = group.betas[2], eps = group.eps} end,
})
