-- Adadelta (Zeiler 2012): steps in units of earlier steps.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@class ampl.optim.Adadelta : ampl.optim.Optimizer
return Optimizer:define("Adadelta", {
  params = {
    option("lr", 1.0), option("rho", 0.9), option("eps", 1e-6), option("weight_decay", 0.0),
    {"maximize", "boolean", false},
  },
  op = "adadelta_step",
  states = function() return {"square_avg", "acc_delta"} end,
  counts = {{"step", 0}},
  options = function(group) return {rho = group.rho, eps = group.eps} end,
})
