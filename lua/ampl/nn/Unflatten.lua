-- Unflatten: makes several dimensions of one.

local Module = require "ampl.nn.Module"
local args = require "ampl.args"

---@class ampl.nn.Unflatten : ampl.nn.Module
local Unflatten = Module:define("Unflatten", {
  {"dim", "dim"}, {"unflattened_size", "size", min = -1, filled = true},
})

function Unflatten:init(...)
  local o = self:options(...)
  self.dim, self.unflattened_size = o.dim, o.unflattened_size
end

function Unflatten:forward(x)
  args.tensor(self.name, "input", x)
  return x:unflatten(self.dim, self.unflattened_size)
end

return Unflatten
