-- LAMB (You et al. 2020): Adam whose steps are as long as the parameter is large, tensor by tensor.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.LAMB : ampl.optim.Optimizer
return Optimizer:define("LAMB", {
  params = {
    option("lr", 1e-3), option("betas", {0.9, 0.999}), option("eps", 1e-6),
    option("weight_decay", 0.0),
    {"maximize", "boolean", false},
  },
  op = "lamb_step",
  states = function() return {"exp_avg", "exp_avg_sq"} end,
  counts = {{"step", 0}},
  options = function(group) return {beta1 = group.betas[1], beta2 = group.betas[2], eps = group.eps} end,
})
