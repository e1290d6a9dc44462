-- Lion (Chen et al. 2023): the sign of a momentum.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.Lion : ampl.optim.Optimizer
return Optimizer:define("Lion", {
  params = {
    option("lr", 1e-4), option("betas", {0.9, 0.99}), option("weight_decay", 0.0),
    {"maximize", "boolean", false},
  },
  op = "lion_step",
  states = function() return {"exp_avg"} end,
  options = function(group) return {beta1 = group.betas[1], beta2 = group.betas[2]} end,
})
