-- ampl.safetensors: weights as PyTorch and Hugging Face exchange them.

local core = require "ampl.core"

local safetensors = {}

---Writes tensors, under their names, and metadata, a table of strings.  The file at `path` is replaced in one step,
---when the new one is whole and on disk; until then, and after a failure, the old one is what it was.
---@param path string
---@param tensors table<string, ampl.Tensor>
---@param metadata? table<string, string>
---@return true? done
---@return string? message when the system refuses
---@return string? code
function safetensors.save(path, tensors, metadata)
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
