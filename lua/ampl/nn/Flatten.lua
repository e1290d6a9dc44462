-- Flatten: makes one dimension of dimensions start_dim to end_dim.

local Module = require "ampl.nn.Module"
local args = require "ampl.args"

---@class ampl.nn.Flatten : ampl.nn.Module
local Flatten = Module:define("Flatten", {{"start_dim", "dim", 2}, {"end_dim", "dim", -1}})

function Flatten:init(...)
  local o = self:options(...)
  self.start_dim, self.end_dim = o.start_dim, o.end_dim
end

function Flatten:forward(x)
  args.tensor(self.name, "input", x)
  return x:flatten(self.start_dim, self.end_dim)
end

return Flatten
