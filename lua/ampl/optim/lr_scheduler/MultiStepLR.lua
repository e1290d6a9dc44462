-- MultiStepLR: times gamma at every milestone; one named twice counts twice.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.MultiStepLR : ampl.optim.LRScheduler
local MultiStepLR = LRScheduler:define("MultiStepLR", {
  {"milestones", "integer_list", min = 0}, {"gamma", "number", 0.1, min = 0},
})

function MultiStepLR:get_lr(lr)
  for _, at in ipairs(self.milestones) do
    if at == self.last_epoch then lr = lr * self.gamma end
  end
  return lr
end

return MultiStepLR
