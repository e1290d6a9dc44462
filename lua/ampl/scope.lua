-- Scopes: the tensors made inside one are dropped at its end, whatever the collector does.

local core = require "ampl.core"
local args = require "ampl.args"

local scope = {}

---With a function: runs fn(...) and drops every handle made inside, but for its results (plain tables of them, too) and
---what was kept by x:keep().  Without: enters at once; `local _ <close> = ampl.scope()` ends with its block.
---@param fn? function
---@return any ...
function scope.scope(fn, ...)
  if fn == nil then return core.scope_open() end
  args.callable("scope", "fn", fn)
  local s <close> = core.scope_open()
  return s:export(fn(...))
end

return scope
