-- Lion (Chen et al. 2023): the sign of a momentum.

local Optimizer = require "ampl.optim.Optimizer"

---@class ampl.optim.Lion : ampl.optim.Optimizer
return Optimizer:define("Lion", {
  params = {
    {"lr", "number", 1e-4}, {"betas", "numbers", {0.9, 0.99}}, {"weight_decay", "number", 0.0},
    {"maximize", "boolean", false},
  },
  op = "lion_step",
  states = function() return {"exp_avg"} end,
  options = function(group) return {beta1 = group.betas[1], beta2 = group.betas[2]} end,
})
