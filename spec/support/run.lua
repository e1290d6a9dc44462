-- Runs spec files by busted under this very program: `ampl spec/support/run.lua FILE ... [busted's options]`.
-- AMPL_SPEC_GC=generational or aggressive chooses the collector.

local collectors = {
  generational = function() collectgarbage("generational") end,
  aggressive = function() collectgarbage("incremental", 50, 400, 8) end,     -- always in the middle of a cycle
}
local name = os.getenv("AMPL_SPEC_GC")
if name then
  assert(collectors[name], "AMPL_SPEC_GC must be generational or aggressive")()
end

local here = arg[0]:match("^(.*)/support/run%.lua$") or "."
package.path = here .. "/../?.lua;" .. package.path          -- require "spec.support.NAME"

-- What busted would exit with is its number of failures, modulo 256; and it must close the state, for leak checks.
local exit = os.exit
os.exit = function(code)                -- luacheck: ignore 122
  exit((code == 0 or code == true) and 0 or 1, true)
end
table.insert(arg, 1, "--ignore-lua")  -- .busted names an interpreter, for `busted` alone; this is the one here
table.insert(arg, 1, "--output=" .. here .. "/support/report.lua")
require "busted.runner"({standalone = false})
