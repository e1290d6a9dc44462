-- ChainedScheduler: several schedulers that each change, at every step, what the one before has left.

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local SequentialLR = require "ampl.optim.lr_scheduler.SequentialLR"
local raise = require "ampl.raise"

---@class ampl.optim.ChainedScheduler : ampl.optim.LRScheduler
local ChainedScheduler = LRScheduler:define("ChainedScheduler", {{"schedulers", "table"}, {"optimizer", "any?"}})

---`ChainedScheduler(list)`, or with the optimizer in front, as other schedulers have it.
function ChainedScheduler:init(first, ...)
  local o
  if type(first) == "table" and first.param_groups then
    o = self.signature(...)
  else
    o = self.signature(first, ...)
  end
  if #o.schedulers == 0 then raise("EARG", self.name, "schedulers is an empty list") end
  local optimizer = o.schedulers[1].optimizer
  for i, s in ipairs(o.schedulers) do
    if s.optimizer ~= optimizer then
      raise("EARG", self.name, ("scheduler %d belongs to another optimizer"):format(i))
    end
  end
  self.optimizer, self.schedulers, self.scaler = optimizer, o.schedulers, o.scaler
  self.last_epoch, self.base_lrs = 0, o.schedulers[1].base_lrs
end

function ChainedScheduler:advance()
  self.last_epoch = self.last_epoch + 1
  for _, s in ipairs(self.schedulers) do s:advance() end
end

ChainedScheduler.state_dict = SequentialLR.state_dict
ChainedScheduler.load_state_dict = SequentialLR.load_state_dict

return ChainedScheduler
