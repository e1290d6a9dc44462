-- Before the first spec: whether the module that they test is there, and whether this Lua can load it.
local found, why = pcall(require, "ampl")
if not found then
  local build = os.getenv("AMPL_BUILD") or "build"
  io.stderr:write(("The specs need the module ampl, which this Lua (%s) cannot load from %s/ampl.so:\n%s\n" ..
                   "Build it with scripts/build, and run busted in the repository's root under Lua 5.4, " ..
                   "or a single spec with %s/ampl spec/support/run.lua spec/NAME_spec.lua.\n")
                  :format(_VERSION, build, tostring(why), build))
  os.exit(1)
end
