-- CosineAnnealingWarmRestarts: half a cosine down to eta_min in T_0 steps, then a jump up; runs grow T_mult-fold.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local raise = require "ampl.raise"

---@class ampl.optim.CosineAnnealingWarmRestarts : ampl.optim.LRScheduler
local CosineAnnealingWarmRestarts = LRScheduler:define("CosineAnnealingWarmRestarts", {
  {"T_0", "integer"}, {"T_mult", "integer", 1}, {"eta_min", "number", 0.0},
})

function CosineAnnealingWarmRestarts:setup()
  if self.T_0 < 1 or self.T_mult < 1 then
    raise("EVALUE", self.name, ("T_0 and T_mult must be at least 1, not %d and %d"):format(self.T_0, self.T_mult))
  end
end

function CosineAnnealingWarmRestarts:get_lr(_, base)
  local at, length = self.last_epoch, self.T_0
  while at >= length do at, length = at - length, length * self.T_mult end
  return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * at / length)) / 2
end

return CosineAnnealingWarmRestarts
