-- Dropout: in training, zeroes each entry with probability p and scales the others by 1 / (1 - p).

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local args = require "ampl.args"

---@class ampl.nn.Dropout : ampl.nn.Module
---@field p number
local Dropout = Module:define("Dropout", {
  {"p", "number", 0.5, min = 0, max = 1}, {"inplace", "boolean", false},
})

function Dropout:init(...)
  local o = self:options(...)
  self.p, self.inplace = o.p, o.inplace
end

function Dropout:forward(x)
  if self.inplace and self.training then
    args.tensor(self.name, "input", x)
    return x:mul_(F.dropout(core.ones_like(x), self.p, true))
  end
  return F.dropout(x, self.p, self.training)
end

return Dropout
