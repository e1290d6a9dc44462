-- npy files: arrays that NumPy has written.

local core = require "ampl.core"
local args = require "ampl.args"

local signature = args.signature("data.npy", {{"path", "string"}})

---The array of numbers or bools in a file; small integers come as i32, unsigned 32-bit ones as i64.
---@param path string
---@return ampl.Tensor? t
---@return string? message when the file cannot be read
---@return string? code
return function(path, ...)
  return core.npy_load(signature(path, ...).path)
end
