-- Unflatten: makes several dimensions of one.

local Module = require "ampl.nn.Module"

---@class ampl.nn.Unflatten : ampl.nn.Module
local Unflatten = Module:define("Unflatten", {{"dim", "integer"}, {"unflattened_size", "size"}})

function Unflatten:init(...)
  local o = self:options(...)
  self.dim, self.unflattened_size = o.dim, o.unflattened_size
end

function Unflatten:forward(x)
  return x:unflatten(self.dim, self.unflattened_size)
end

return Unflatten
