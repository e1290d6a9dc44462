-- Parameter: a leaf tensor that a module counts among its parameters, also when it wants no gradient.

local args = require "ampl.args"

local marked = setmetatable({}, {__mode = "k"})

local Parameter = {params = {{"data", "tensor"}, {"requires_grad", "boolean", true}}}

local read = args.signature("Parameter", Parameter.params)

---@param tensor ampl.Tensor its data is shared
---@param options? boolean|{requires_grad: boolean}
---@return ampl.Tensor
local function make(_, tensor, options)
  local o = read(tensor, options)
  local p = o.data:detach()
  if o.requires_grad then p:requires_grad_(true) end
  marked[p] = true
  return p
end

---Whether a tensor was made by Parameter.
---@param v any
---@return boolean
function Parameter.is(v) return marked[v] == true end

return setmetatable(Parameter, {__call = make})
