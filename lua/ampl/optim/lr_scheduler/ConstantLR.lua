-- ConstantLR: `factor` times the rate for the first `total_iters` steps.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.ConstantLR : ampl.optim.LRScheduler
local ConstantLR = LRScheduler:define("ConstantLR", {
  {"factor", "number", 1 / 3, above = 0, max = 1}, {"total_iters", "integer", 5, min = 1},
})

function ConstantLR:get_lr(lr)
  if self.last_epoch == 0 then return lr * self.factor end
  return self.last_epoch == self.total_iters and lr / self.factor or lr
end

return ConstantLR
