-- LinearLR: a factor that goes from start_factor to end_factor in `total_iters` equal steps.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.LinearLR : ampl.optim.LRScheduler
local LinearLR = LRScheduler:define("LinearLR", {
  {"start_factor", "number", 1 / 3, above = 0, max = 1}, {"end_factor", "number", 1.0, min = 0, max = 1},
  {"total_iters", "integer", 5, min = 1},
})

function LinearLR:get_lr(lr)
  local e = self.last_epoch
  if e == 0 then return lr * self.start_factor end
  if e > self.total_iters or self.initial then return lr end
  local slope = self.end_factor - self.start_factor
  return lr * (1 + slope / (self.total_iters * self.start_factor + (e - 1) * slope))
end

return LinearLR
