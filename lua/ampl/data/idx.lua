-- IDX files (MNIST's format), compressed by gzip or not.

local core = require "ampl.core"
local args = require "ampl.args"

local signature = args.signature("idx", {{"path", "string"}, {"base", "integer?"}})

---The tensor a file holds: unsigned bytes as u8, other integers as i32, floats as f32 or f64.  With `base`, the number
---that the file's first class has, it is read as labels: i64, counting from 1 (`data.idx(path, {base = 0})` for MNIST).
---@param path string
---@param options? {base: integer}
---@return ampl.Tensor? t
---@return string? message when the file cannot be read
---@return string? code
return function(path, options)
  local o = signature(path, options)
  local t, message, code = core.idx_load(o.path)
  if not t then return nil, message, code end
  if o.base then t = t:to("i64") + (1 - o.base) end
  return t
end
