-- The tensors that a function over parameters is given: a list of them, a module, or one tensor.

local args = require "ampl.args"
local raise = require "ampl.raise"

---@param op string who asks, for messages
---@param params ampl.Tensor[]|ampl.nn.Module|ampl.Tensor
---@return ampl.Tensor[]
---@return string[]? names of a module's
return function(op, params)
  if type(params) == "userdata" then return {params} end
  if type(params) ~= "table" then
    raise("EARG", op, "parameters must be a list of tensors or a module, not " .. args.shown(params))
  end
  local list = {}
  if type(params.named_parameters) == "function" then
    local names = {}
    for name, p in params:named_parameters() do list[#list + 1], names[#names + 1] = p, name end
    return list, names
  end
  for i, p in ipairs(params) do
    if type(p) ~= "userdata" then
      raise("EARG", op, ("entry %d of the parameters is %s, not a tensor"):format(i, args.shown(p)))
    end
    list[i] = p
  end
  return list
end
