-- What the schedulers that are made of others ask of these.

local Class = require "ampl.class"
local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local ReduceLROnPlateau = require "ampl.optim.lr_scheduler.ReduceLROnPlateau"
local args = require "ampl.args"
local raise = require "ampl.raise"

---Raises unless `list` holds schedulers of one optimizer that need no metric.
---@param name string who asks
---@param list table
---@param optimizer? table the first one's when it is not given
---@return table optimizer
return function(name, list, optimizer)
  if #list == 0 then raise("EARG", name, "schedulers is an empty list") end
  for i, s in ipairs(list) do
    if type(s) ~= "table" or not Class.is_a(s, LRScheduler) then
      raise("EARG", name, ("entry %d of schedulers must be a scheduler, not %s"):format(i, args.shown(s)))
    end
    if Class.is_a(s, ReduceLROnPlateau) then
      raise("EARG", name,
            ("entry %d of schedulers is a ReduceLROnPlateau, whose step needs a metric: step it by itself"):format(i))
    end
    optimizer = optimizer or s.optimizer
    if s.optimizer ~= optimizer then raise("EARG", name, ("scheduler %d belongs to another optimizer"):format(i)) end
  end
  return optimizer
end
