-- Dropout: in training, zeroes each entry with probability p and scales the others by 1 / (1 - p).

local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local raise = require "ampl.raise"

---@class ampl.nn.Dropout : ampl.nn.Module
---@field p number
local Dropout = Module:define("Dropout", {{"p", "number", 0.5}})

function Dropout:init(...)
  self.p = self:options(...).p
  if not (self.p >= 0 and self.p <= 1) then
    raise("EVALUE", self.name, ("p must be from 0 to 1, not %g"):format(self.p))
  end
end

function Dropout:forward(x)
  return F.dropout(x, self.p, self.training)
end

return Dropout
