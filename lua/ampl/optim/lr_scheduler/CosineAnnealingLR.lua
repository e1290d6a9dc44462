-- CosineAnnealingLR: half a cosine from the rate to eta_min in T_max steps, and up again after that.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.CosineAnnealingLR : ampl.optim.LRScheduler
local CosineAnnealingLR = LRScheduler:define("CosineAnnealingLR", {
  {"T_max", "integer", min = 1}, {"eta_min", "number", 0.0, min = 0},
})

function CosineAnnealingLR:get_lr(lr, base)
  local e, n, low = self.last_epoch, self.T_max, self.eta_min
  if e == 0 or self.initial then return lr end
  if (e - 1 - n) % (2 * n) == 0 then                    -- one step past the bottom: the ratio below is 0 / 0
    return lr + (base - low) * (1 - math.cos(math.pi / n)) / 2
  end
  return low + (lr - low) * (1 + math.cos(math.pi * e / n)) / (1 + math.cos(math.pi * (e - 1) / n))
end

return CosineAnnealingLR
