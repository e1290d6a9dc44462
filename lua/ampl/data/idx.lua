-- IDX files (MNIST's format), compressed by gzip or not.

local core = require "ampl.core"
local args = require "ampl.args"
local raise = require "ampl.raise"

local signature = args.signature("data.idx", {{"path", "string"}, {"base", "integer?"}})

-- Labels as i64 that count from 1, exactly; nil and a message where one is no whole number.
local function labels(path, t, base)
  if t.dtype == "f32" or t.dtype == "f64" then
    local bad = t:isfinite():logical_and(t:eq(t:floor())):logical_and(t:abs():lt(2.0^53)):logical_not()
    local at = bad:flatten():nonzero()
    if #at > 0 then
      local i = at[1]:item()
      local label = t:flatten()[i]:item()
      return nil, ("%s: label %s at position %d is no whole number"):format(core.escape(path), label, i), "EFORMAT"
    end
  end
  return t:to("i64") + (1 - base)
end

---The tensor a file holds: unsigned bytes as u8, other integers as i32, floats as f32 or f64.  With `base`, the number
---that the file's first class has, it is read as labels: i64, counting from 1 (`data.idx(path, {base = 0})` for MNIST).
---@param path string
---@param options? {base: integer}
---@return ampl.Tensor? t
---@return string? message when the file cannot be read
---@return string? code
return function(path, options)
  local o = signature(path, options)
  if o.base and (o.base > 2^53 or o.base < -2^53) then
    raise("EVALUE", "data.idx", ("base = %d; no class has that number"):format(o.base))
  end
  local t, message, code = core.idx_load(o.path)
  if not t then return nil, message, code end
  if o.base then return labels(o.path, t, o.base) end
  return t
end
