-- Adagrad (Duchi et al. 2011): the gradient over the root of the sum of its squares.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.Adagrad : ampl.optim.Optimizer
return Optimizer:define("Adagrad", {
  params = {
    option("lr", 1e-2), option("lr_decay", 0.0), option("weight_decay", 0.0),
    option("initial_accumulator_value", 0.0), option("eps", 1e-10), {"maximize", "boolean", false},
  },
  op = "adagrad_step",
  states = function() return {"sum"} end,
  start = function(_, group) return group.initial_accumulator_value end,
  counts = {{"step", 0}},
  eager = true,
  options = function(group) return {lr_decay = group.lr_decay, eps = group.eps} end,
})
