-- StepLR: times gamma after every `step_size` steps.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.StepLR : ampl.optim.LRScheduler
local StepLR = LRScheduler:define("StepLR", {
  {"step_size", "integer", min = 1}, {"gamma", "number", 0.1, min = 0},
})

function StepLR:get_lr(lr)
  local e = self.last_epoch
  return (e == 0 or e % self.step_size ~= 0) and lr or lr * self.gamma
end

return StepLR
