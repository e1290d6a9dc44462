-- ChainedScheduler: several schedulers that each change, at every step, what the one before has left.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local SequentialLR = require "ampl.optim.lr_scheduler.SequentialLR"
local check_schedulers = require "ampl.optim.lr_scheduler.schedulers"

---@class ampl.optim.ChainedScheduler : ampl.optim.LRScheduler
local ChainedScheduler = LRScheduler:define("ChainedScheduler", {
  {"schedulers", "list", filled = true}, {"optimizer", "optimizer?"},
}, {leads = false, resumes = false})

---`ChainedScheduler(list)`, or with the optimizer in front, as other schedulers have it.
function ChainedScheduler:init(first, ...)
  local o
  if type(first) == "table" and first.param_groups then
    o = self.parser:read(self.name, "", ...)
    o.optimizer = o.optimizer or first
  else
    o = self.parser:read(self.name, "", first, ...)
  end
  local optimizer = check_schedulers(self.name, o.schedulers, o.optimizer)
  self.optimizer, self.schedulers, self.scaler = optimizer, o.schedulers, o.scaler
  self.last_epoch, self.start, self.base_lrs = 0, -1, o.schedulers[1].base_lrs
end

function ChainedScheduler:restart()
  for _, s in ipairs(self.schedulers) do s:restart() end
  self.last_epoch = 0
end

function ChainedScheduler:advance()
  self.last_epoch = self.last_epoch + 1
  for _, s in ipairs(self.schedulers) do s:advance() end
end

ChainedScheduler.state_dict = SequentialLR.state_dict
ChainedScheduler.load_state_dict = SequentialLR.load_state_dict

return ChainedScheduler
