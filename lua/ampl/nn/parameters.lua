-- The tensors that a function over parameters is given: a list of them, a module, or one tensor.

local core = require "ampl.core"
local kinds = require "ampl.kinds"
local raise = require "ampl.raise"

---@param op string who asks, for messages
---@param params ampl.Tensor[]|ampl.nn.Module|ampl.Tensor
---@return ampl.Tensor[]
---@return string[]? names of a module's
return function(op, params)
  local kept, why, code = kinds.check("parameters")(params)
  if not kept then
    raise(code or "EARG", op, why and "parameters " .. why or
          ("parameters must be %s, not %s"):format(kinds.text("parameters"), kinds.shown(params)))
  end
  if core.is_tensor(params) then return {params} end
  if type(params.named_parameters) == "function" then
    local list, names = {}, {}
    for name, p in params:named_parameters() do list[#list + 1], names[#names + 1] = p, name end
    return list, names
  end
  return kept
end
