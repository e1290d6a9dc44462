-- Parameter: a leaf tensor that a module counts among its parameters, also when it wants no gradient.

local core = require "ampl.core"
local raise = require "ampl.raise"

local marked = setmetatable({}, {__mode = "k"})

local Parameter = {}

---@param tensor ampl.Tensor its data is shared
---@param options? boolean|{requires_grad: boolean}
---@return ampl.Tensor
local function make(_, tensor, options)
  if not core.is_tensor(tensor) then raise("EARG", "Parameter", "the first argument must be a tensor") end
  if type(options) == "table" then options = options.requires_grad end
  local p = tensor:detach()
  if options ~= false then p:requires_grad_(true) end
  marked[p] = true
  return p
end

---Whether a tensor was made by Parameter.
---@param v any
---@return boolean
function Parameter.is(v) return marked[v] == true end

return setmetatable(Parameter, {__call = make})
