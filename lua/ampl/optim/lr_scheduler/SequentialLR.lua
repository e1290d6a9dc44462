-- SequentialLR: one scheduler after another, changing at milestones; each starts from the rates at the very start.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local args = require "ampl.args"
local check_schedulers = require "ampl.optim.lr_scheduler.schedulers"
local raise = require "ampl.raise"

---@class ampl.optim.SequentialLR : ampl.optim.LRScheduler
local SequentialLR = LRScheduler:define("SequentialLR", {
  {"schedulers", "list", filled = true}, {"milestones", "integer_list", min = 0},
})

function SequentialLR:setup()
  local n = #self.schedulers
  if #self.milestones ~= n - 1 then
    raise("EARG", self.name, ("%d milestones for %d schedulers; there must be one less"):format(#self.milestones, n))
  end
  for i = 2, n - 1 do
    if self.milestones[i] < self.milestones[i - 1] then
      raise("EVALUE", self.name, ("milestones must grow, but entry %d is %d, after %d"):format(
        i, self.milestones[i], self.milestones[i - 1]))
    end
  end
  check_schedulers(self.name, self.schedulers, self.optimizer)
end

-- Where it resumes at a step, the first scheduler starts there, as PyTorch has it.
function SequentialLR:begin()
  if self.last_epoch == -1 then return self:advance() end
  self.last_epoch = self.last_epoch + 1
  local current = 1
  for i, at in ipairs(self.milestones) do
    if at <= 0 then current = i + 1 end
  end
  self.schedulers[current]:restart()
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
  if type(state) ~= "table" or type(state.schedulers) ~= "table" or #state.schedulers ~= #self.schedulers then
    raise("EARG", self.name, ("load_state_dict: a state of %d schedulers is needed, not %s"):format(
      #self.schedulers, args.shown(state)))
  end
  local own = {}
  for k, v in pairs(state) do own[k] = v end
  own.schedulers = nil
  LRScheduler.check_state(self, own)
  for i, s in ipairs(self.schedulers) do s:check_state(state.schedulers[i]) end
  for i, s in ipairs(self.schedulers) do s:load_state_dict(state.schedulers[i]) end
  LRScheduler.load_state_dict(self, own)
end

return SequentialLR
