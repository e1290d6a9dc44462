-- CosineAnnealingWarmRestarts: half a cosine down to eta_min in T_0 steps, then a jump up; runs grow T_mult-fold.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"

---@class ampl.optim.CosineAnnealingWarmRestarts : ampl.optim.LRScheduler
local CosineAnnealingWarmRestarts = LRScheduler:define("CosineAnnealingWarmRestarts", {
  {"T_0", "integer", min = 1}, {"T_mult", "integer", 1, min = 1}, {"eta_min", "number", 0.0, min = 0},
})

function CosineAnnealingWarmRestarts:get_lr(_, base)
  local at, length = self.last_epoch, self.T_0
  if self.T_mult == 1 then at = at % length end
  while at >= length do at, length = at - length, length * (self.T_mult + 0.0) end     -- a float: it does not wrap
  return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * at / length)) / 2
end

return CosineAnnealingWarmRestarts
