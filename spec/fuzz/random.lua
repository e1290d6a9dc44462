-- A stream of random numbers that does not depend on Lua's own or on ampl's, so that a seed repeats a run.

local random = {}
random.__index = random

function random.new(seed)
  return setmetatable({state = seed * 2654435761 ~ 0x9E3779B97F4A7C15}, random)
end

-- 0 .. n - 1
function random:below(n)
  local s = self.state
  s = s ~ (s << 13)
  s = s ~ (s >> 7)
  s = s ~ (s << 17)
  self.state = s
  return (s >> 11) % n
end

function random:chance(one_in) return self:below(one_in) == 0 end
function random:pick(list) return list[self:below(#list) + 1] end

-- A key of a table of weights {key = weight}; `order` fixes the order in which they are looked at.
function random:weighted(order, weights)
  local total = 0
  for _, k in ipairs(order) do total = total + weights[k] end
  local r = self:below(total)
  for _, k in ipairs(order) do
    r = r - weights[k]
    if r < 0 then return k end
  end
end

return random
