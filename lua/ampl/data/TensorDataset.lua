-- A data set over tensors of one length: sample i is row i of each.

local Class = require "ampl.class"
local args = require "ampl.args"
local core = require "ampl.core"
local row = require "ampl.data.row"
local raise = require "ampl.raise"

---@class ampl.data.TensorDataset : ampl.Class
---@field tensors ampl.Tensor[]
---@operator len: integer
---@overload fun(...: ampl.Tensor): ampl.data.TensorDataset
local TensorDataset = Class:extend("TensorDataset")

---@param ... ampl.Tensor
function TensorDataset:init(...)
  self.tensors = {...}
  local n = select("#", ...)
  if n == 0 then raise("EARG", "TensorDataset", "takes one tensor or more") end
  for i = 1, n do
    local t = self.tensors[i]
    if not core.is_tensor(t) then
      raise("EARG", "TensorDataset", ("argument %d must be a tensor, not %s"):format(i, args.shown(t)))
    end
    if t.ndim == 0 then
      raise("ESHAPE", "TensorDataset", ("argument %d has no dimension to take rows from"):format(i))
    end
    if #t ~= #self.tensors[1] then
      raise("ESHAPE", "TensorDataset",
            ("argument %d has %d rows, argument 1 has %d; all need as many"):format(i, #t, #self.tensors[1]))
    end
  end
end

function TensorDataset:__len() return #self.tensors[1] end

function TensorDataset:__tostring()
  local parts = {}
  for i, t in ipairs(self.tensors) do
    local ok, dtype = pcall(function() return t.dtype end)
    parts[i] = ok and ("%s {%s}"):format(dtype, table.concat(t.shape, ", ")) or "freed"
  end
  return ("TensorDataset(%s)"):format(table.concat(parts, ", "))
end

---Row i of every tensor.
---@param i integer
---@return ampl.Tensor ...
function TensorDataset:get(i)
  local out = {}
  i = row("TensorDataset", i, #self)
  for k, t in ipairs(self.tensors) do out[k] = t[i] end
  return table.unpack(out)
end

---The rows at `positions` of every tensor.
---@param positions ampl.Tensor i64, one dimension
---@return ampl.Tensor ...
function TensorDataset:get_batch(positions)
  local out = {}
  for k, t in ipairs(self.tensors) do out[k] = t:index_select(1, positions) end
  return table.unpack(out)
end

return TensorDataset
