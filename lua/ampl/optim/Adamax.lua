-- Adamax (Kingma and Ba 2015): Adam with the largest gradient so far in place of the second moment.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.Adamax : ampl.optim.Optimizer
return Optimizer:define("Adamax", {
  params = {
    option("lr", 2e-3), option("betas", {0.9, 0.999}), option("eps", 1e-8),
    option("weight_decay", 0.0),
    {"maximize", "boolean", false},
  },
  op = "adamax_step",
  states = function() return {"exp_avg", "exp_inf"} end,
  counts = {{"step", 0}},
  options = function(group) return {beta1 = group.betas[1], beta2 = group.betas[2], eps = group.eps} end,
})
