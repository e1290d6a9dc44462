-- What Adam and AdamW share: two moments, optionally the largest second one, and a count.

local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"

---@param name string
---@param decay number default of weight_decay
---@param decoupled boolean whether decay acts on the parameter itself, not on the gradient
---@return ampl.optim.Optimizer
return function(name, decay, decoupled)
  return Optimizer:define(name, {
    params = {
      option("lr", 1e-3), option("betas", {0.9, 0.999}), option("eps", 1e-8),
      option("weight_decay", decay), {"amsgrad", "boolean", false}, {"maximize", "boolean", false},
    },
    op = "adam_step",
    states = function(group)
      return group.amsgrad and {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"} or {"exp_avg", "exp_avg_sq"}
    end,
    counts = {{"step", 0}},
    options = function(group)
      return {beta1 = group.betas[1], beta2 = group.betas[2], eps = group.eps, amsgrad = group.amsgrad,
              decoupled = decoupled}
    end,
  })
end
