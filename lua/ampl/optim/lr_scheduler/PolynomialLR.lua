-- PolynomialLR: (1 - step / total_iters) ^ power of the rate, 0 at the end.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.PolynomialLR : ampl.optim.LRScheduler
local PolynomialLR = LRScheduler:define("PolynomialLR", {
  {"total_iters", "integer", 5, min = 1}, {"power", "number", 1.0, min = 0},
})

function PolynomialLR:get_lr(lr)
  local e, n = self.last_epoch, self.total_iters
  if e == 0 or e > n or self.initial then return lr end
  return lr * ((1 - e / n) / (1 - (e - 1) / n)) ^ self.power
end

return PolynomialLR
