-- Adagrad (Duchi et al. 2011): the gradient over the root of the sum of its squares.

local Optimizer = require "ampl.optim.Optimizer"

---@class ampl.optim.Adagrad : ampl.optim.Optimizer
return Optimizer:define("Adagrad", {
  params = {
    {"lr", "number", 1e-2}, {"lr_decay", "number", 0.0}, {"weight_decay", "number", 0.0},
    {"initial_accumulator_value", "number", 0.0}, {"eps", "number", 1e-10}, {"maximize", "boolean", false},
  },
  op = "adagrad_step",
  states = function() return {"sum"} end,
  start = function(_, group) return group.initial_accumulator_value end,
  counts = {{"step", 0}},
  eager = true,
  options = function(group) return {lr_decay = group.lr_decay, eps = group.eps} end,
})
