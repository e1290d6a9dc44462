-- Moves the momentum of a group, for schedulers that cycle it: `momentum`, or the first of `betas`.

local raise = require "ampl.raise"

local momentum = {}

---@param group table
---@param value number
function momentum.set(group, value)
  if group.betas then
    group.betas = {value, group.betas[2]}               -- a new list: groups may share the old one
  else
    group.momentum = value
  end
end

---Raises unless every group has something to move.
function momentum.check(name, optimizer)
  for i, group in ipairs(optimizer.param_groups) do
    if not group.betas and group.momentum == nil then
      raise("EARG", name, ("parameter group %d has no momentum: give cycle_momentum = false"):format(i))
    end
  end
end

return momentum
