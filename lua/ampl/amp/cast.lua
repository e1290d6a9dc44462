-- Casts the float tensors in arguments and results, however deep they lie in lists and tables.

local core = require "ampl.core"
local kinds = require "ampl.kinds"

local is_tensor = core.is_tensor
local floats = {f32 = true, f16 = true, bf16 = true}    -- who uses f64 means it

---v with every f32, f16 and bf16 tensor in it in `dtype`; the rest, and objects, as they are.
---@param v any
---@param dtype string
---@return any
local function cast(v, dtype)
  if is_tensor(v) then
    return floats[v.dtype] and v.dtype ~= dtype and v:to(dtype) or v
  end
  if type(v) ~= "table" or not kinds.is_plain(v) then return v end
  local out = {}
  for k, e in pairs(v) do out[k] = cast(e, dtype) end
  return out
end

return cast
