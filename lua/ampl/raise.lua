-- Raises ampl's error object from Lua.
local core = require "ampl.core"
return core.raise
