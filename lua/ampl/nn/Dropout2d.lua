-- Dropout2d: in training, zeroes whole channels with probability p and scales the others by 1 / (1 - p).

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Dropout = require "ampl.nn.Dropout"
local args = require "ampl.args"
local raise = require "ampl.raise"

---@class ampl.nn.Dropout2d : ampl.nn.Dropout
local Dropout2d = Dropout:extend("Dropout2d")

function Dropout2d:forward(x)
  local shape = args.tensor(self.name, "input", x).shape
  if #shape ~= 3 and #shape ~= 4 then
    raise("ESHAPE", self.name, ("the input must have 3 or 4 dimensions, not %d"):format(#shape))
  end
  if not self.training then return x end
  shape[#shape], shape[#shape - 1] = 1, 1
  local kept = F.dropout(core.ones(shape, {dtype = x.dtype, device = x.device}), self.p, true)
  return self.inplace and x:mul_(kept) or x * kept
end

return Dropout2d
