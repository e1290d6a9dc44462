-- The number of a sample, as get(i) takes it.

local args = require "ampl.args"
local raise = require "ampl.raise"

---@param op string the data set, for messages
---@param i any from 1, or from -1 backwards
---@param n integer samples there are
---@return integer
return function(op, i, n)
  local at = math.type(i) and math.tointeger(i)
  if not at then raise("EARG", op, "get takes the number of a sample, not " .. args.shown(i)) end
  if at == 0 or at > n or at < -n then
    raise("EINDEX", op, ("get(%d); there are %d samples"):format(at, n))
  end
  return at
end
