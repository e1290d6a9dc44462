-- warmup: from 0 to the rate in `warmup_steps` steps, then constant, linear to 0 or along a cosine.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local raise = require "ampl.raise"

---@class ampl.optim.warmup : ampl.optim.LRScheduler
local warmup = LRScheduler:define("warmup", {
  {"warmup_steps", "integer", min = 0}, {"total_steps", "integer?", min = 1},
  {"decay", "string", "linear", choices = {"linear", "cosine", "constant"}}, {"cycles", "number", 0.5, min = 0},
})

function warmup:setup()
  if self.decay ~= "constant" and not self.total_steps then
    raise("EARG", self.name, ('total_steps is missing: decay = "%s" needs it'):format(self.decay))
  end
end

function warmup:get_lr(_, base)
  local e, start = self.last_epoch, self.warmup_steps
  if e < start then return base * e / math.max(1, start) end
  if self.decay == "constant" then return base end
  local rest = math.max(1, self.total_steps - start)
  if self.decay == "linear" then return base * math.max(0, (self.total_steps - e) / rest) end
  return base * math.max(0, 0.5 * (1 + math.cos(2 * math.pi * self.cycles * (e - start) / rest)))
end

return warmup
