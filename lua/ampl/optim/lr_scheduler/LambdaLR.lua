-- LambdaLR: the rate times what a function of the number of steps taken gives.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local raise = require "ampl.raise"

---@class ampl.optim.LambdaLR : ampl.optim.LRScheduler
local LambdaLR = LRScheduler:define("LambdaLR", {{"lr_lambda", "any"}})

function LambdaLR:setup()
  self.lambdas = self:per_group("lr_lambda", self.lr_lambda)
  self.lr_lambda = nil
  for _, f in ipairs(self.lambdas) do
    if type(f) ~= "function" then raise("EARG", self.name, "lr_lambda must be a function or a list of functions") end
  end
end

function LambdaLR:get_lr(_, base, i)
  return base * self.lambdas[i](self.last_epoch)
end

---The state without the functions, which the scheduler is made with.
function LambdaLR:state_dict()
  local state = LRScheduler.state_dict(self)
  state.lambdas = nil
  return state
end

return LambdaLR
