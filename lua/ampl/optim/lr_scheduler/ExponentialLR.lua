-- ExponentialLR: times gamma after every step.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.ExponentialLR : ampl.optim.LRScheduler
local ExponentialLR = LRScheduler:define("ExponentialLR", {{"gamma", "number", min = 0}})

function ExponentialLR:get_lr(lr)
  return (self.last_epoch == 0 or self.initial) and lr or lr * self.gamma
end

return ExponentialLR
