-- Sequential: modules that each get what the one before returns.

local ModuleList = require "ampl.nn.ModuleList"

---@class ampl.nn.Sequential : ampl.nn.ModuleList
local Sequential = ModuleList:extend("Sequential")

function Sequential:forward(...)
  local n = #self
  if n == 0 then return ... end
  if n == 1 then return self[1](...) end
  local x = self[1](...)
  for i = 2, n - 1 do x = self[i](x) end
  return self[n](x)
end

return Sequential
