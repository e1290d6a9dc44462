-- LambdaLR: the rate times what a function of the number of steps taken gives.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.LambdaLR : ampl.optim.LRScheduler
local LambdaLR = LRScheduler:define("LambdaLR", {{"lr_lambda", "functions"}})

function LambdaLR:setup()
  self.lambdas = self:per_group("lr_lambda", self.lr_lambda)
  self.lr_lambda = nil
end

function LambdaLR:get_lr(_, base, i)
  return base * self:number_of("lr_lambda", self.lambdas[i](self.last_epoch))
end

---The state without the functions, which the scheduler is made with.
function LambdaLR:state_dict()
  local state = LRScheduler.state_dict(self)
  state.lambdas = nil
  return state
end

return LambdaLR
