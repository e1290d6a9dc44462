-- ampl.safetensors: weights as PyTorch and Hugging Face exchange them.

local core = require "ampl.core"
local raise = require "ampl.raise"

local safetensors = {}

-- Modules, optimizers and the like are tables, too, but what they hold is told by their state_dict().
local function check_tensors(tensors)
  if type(tensors) ~= "table" or not getmetatable(tensors) or type(tensors.state_dict) ~= "function" then return end
  local what = type(tensors.name) == "string" and "a " .. core.escape(tensors.name) or "an object"
  raise("EARG", "safetensors.save",
        ("tensors must be a table {name = tensor}, not %s: give what its state_dict() returns"):format(what))
end

---Writes tensors, under their names, and metadata, a table of strings.  The file at `path` is replaced in one step,
---when the new one is whole and on disk; until then, and after a failure, the old one is what it was.
---@param path string
---@param tensors table<string, ampl.Tensor>
---@param metadata? table<string, string>
---@return true? done
---@return string? message when the system refuses
---@return string? code
function safetensors.save(path, tensors, metadata)
  check_tensors(tensors)
  return core.safetensors_save(path, tensors, metadata)
end

---Reads a file.  Every length in it is checked before it is believed; nothing in it is run.
---@param path string
---@return table<string, ampl.Tensor>? tensors
---@return table<string, string>|string metadata or, when the file cannot be read, a message
---@return string? code
function safetensors.load(path)
  return core.safetensors_load(path)
end

return safetensors
