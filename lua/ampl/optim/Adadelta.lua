-- Adadelta (Zeiler 2012): steps in units of earlier steps.

local Optimizer = require "ampl.optim.Optimizer"

---@class ampl.optim.Adadelta : ampl.optim.Optimizer
return Optimizer:define("Adadelta", {
  params = {
    {"lr", "number", 1.0}, {"rho", "number", 0.9}, {"eps", "number", 1e-6}, {"weight_decay", "number", 0.0},
    {"maximize", "boolean", false},
  },
  op = "adadelta_step",
  states = function() return {"square_avg", "acc_delta"} end,
  counts = {{"step", 0}},
  options = function(group) return {rho = group.rho, eps = group.eps} end,
})
