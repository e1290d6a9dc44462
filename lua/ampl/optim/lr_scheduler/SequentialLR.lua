-- SequentialLR: one scheduler after another, changing at milestones; each starts from the rates at the very start.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local raise = require "ampl.raise"

---@class ampl.optim.SequentialLR : ampl.optim.LRScheduler
local SequentialLR = LRScheduler:define("SequentialLR", {{"schedulers", "table"}, {"milestones", "table"}})

function SequentialLR:setup()
  local n = #self.schedulers
  if n == 0 or #self.milestones ~= n - 1 then
    raise("EARG", self.name, ("%d milestones for %d schedulers; there must be one less"):format(#self.milestones, n))
  end
  for i, s in ipairs(self.schedulers) do
    if s.optimizer ~= self.optimizer then
      raise("EARG", self.name, ("scheduler %d belongs to another optimizer"):format(i))
    end
  end
end

function SequentialLR:advance()
  self.last_epoch = self.last_epoch + 1
  local current, restart = 1, self.last_epoch == 0
  for i, at in ipairs(self.milestones) do
    if self.last_epoch >= at then current, restart = i + 1, self.last_epoch == at end
  end
  local s = self.schedulers[current]
  if restart then s:restart() else s:advance() end
end

function SequentialLR:state_dict()
  local state = LRScheduler.state_dict(self)
  state.schedulers = {}
  for i, s in ipairs(self.schedulers) do state.schedulers[i] = s:state_dict() end
  return state
end

function SequentialLR:load_state_dict(state)
  local own = {}
  for k, v in pairs(state) do own[k] = v end
  own.schedulers = nil
  for i, s in ipairs(self.schedulers) do s:load_state_dict(state.schedulers[i]) end
  LRScheduler.load_state_dict(self, own)
end

return SequentialLR
