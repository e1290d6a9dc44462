-- ampl.nn.utils: clipping and measuring gradients, parameters as one vector.

local core = require "ampl.core"
local args = require "ampl.args"
local parameters = require "ampl.nn.parameters"
local raise = require "ampl.raise"

local utils = {}

-- The p-norm of one tensor as a number.  Where its powers leave f32 the sum is made again in f64.
local function norm_of(t, p)
  local x = t:detach()
  local n = x:norm(p, {dtype = x.dtype == "f64" and "f64" or "f32"}):item()
  if n ~= n or n == math.huge or n == 0 then
    local wide = x:to("f64"):norm(p):item()
    return wide
  end
  return n
end

local function total(list, p)
  local _ <close> = core.scope_open()                   -- what is made on the way is let go at once
  local sum, largest = 0.0, 0.0
  for _, t in ipairs(list) do
    local n = norm_of(t, p)
    if n ~= n then return n end
    largest = math.max(largest, n)
    sum = sum + n ^ p
  end
  if p == math.huge then return largest end
  if largest == 0 or largest == math.huge then return largest end
  if sum == math.huge or sum == 0 then                  -- norms whose powers leave f64
    sum = 0.0
    for _, t in ipairs(list) do sum = sum + (norm_of(t, p) / largest) ^ p end
    return largest * sum ^ (1 / p)
  end
  return sum ^ (1 / p)
end

-- The dtype that norms are told in: f32, and f64 where gradients are.
local function dtype_of(list)
  for _, t in ipairs(list) do
    if t.dtype == "f64" then return "f64" end
  end
  return "f32"
end

local norm_type = {"norm_type", "norm_type", 2.0, above = 0}
local error_if_nonfinite = {"error_if_nonfinite", "boolean", false}

local function gradients(op, params)
  local out = {}
  for _, p in ipairs(parameters(op, params)) do
    local g = p.grad
    if g then out[#out + 1] = g:detach() end
  end
  return out
end

local function finite(v)
  return v == v and v ~= math.huge and v ~= -math.huge
end

---The norm of all tensors as if they were one vector, summed in f32 or wider: a 0-d tensor, f32 (f64 for f64 tensors).
---@param tensors ampl.Tensor[] gradients
---@return ampl.Tensor
utils.get_total_norm = args.declare("get_total_norm", {
  {"tensors", "parameters"}, norm_type, error_if_nonfinite,
}, function(o)
  local list = parameters("get_total_norm", o.tensors)
  local value = total(list, o.norm_type)
  if o.error_if_nonfinite and not finite(value) then
    raise("EVALUE", "get_total_norm", ("the norm is %s"):format(value))
  end
  return core.full({}, value, {dtype = dtype_of(list), device = list[1] and list[1].device})
end)

-- Which parameter makes the norm what it is: "fc.weight" of a module, else "gradient 3".
local function culprit(params)
  local names = {}
  if type(params) == "table" and type(params.named_parameters) == "function" then
    for name, p in params:named_parameters() do names[p] = name end
  end
  for i, p in ipairs(parameters("clip_grad_norm_", params)) do
    local g = p.grad
    if g and not g:detach():isfinite():all():item() then return names[p] or "parameter " .. i end
  end
  return "none alone"
end

-- Scales the gradients; their norm before, and the dtype that it is told in.
local function clip(o)
  local params = o.parameters
  local _ <close> = core.scope_open()
  local list = gradients("clip_grad_norm_", params)
  local norm = total(list, o.norm_type)
  if finite(norm) then
    local factor = o.max_norm / (norm + 1e-6)
    for _, g in ipairs(factor < 1 and list or {}) do g:mul_(factor) end
  elseif o.error_if_nonfinite then
    raise("EVALUE", "clip_grad_norm_", ("the norm of the gradients is %s; the first gradient that is not finite: %s")
      :format(norm, culprit(params)))
  end
  return norm, dtype_of(list), list[1] and list[1].device
end

---Scales all gradients so that their norm is at most max_norm.  A norm that is not finite leaves them as they are.
---With a GradScaler call scaler:unscale_(optimizer) before.
---@param params ampl.Tensor[]|ampl.nn.Module
---@return ampl.Tensor norm before, 0-d f32 (f64 for f64 gradients)
utils.clip_grad_norm_ = args.declare("clip_grad_norm_", {
  {"parameters", "parameters"}, {"max_norm", "number", min = 0}, norm_type, error_if_nonfinite,
}, function(o)
  local norm, dtype, device = clip(o)
  return core.full({}, norm, {dtype = dtype, device = device})
end)

---Cuts every entry of the gradients to -value .. value; NaN stays.
---@param params ampl.Tensor[]|ampl.nn.Module
---@param value number
utils.clip_grad_value_ = args.declare("clip_grad_value_", {
  {"parameters", "parameters"}, {"clip_value", "number", min = 0},
}, function(o)
  local _ <close> = core.scope_open()
  local value = o.clip_value
  for _, g in ipairs(gradients("clip_grad_value_", o.parameters)) do g:clamp_({min = -value, max = value}) end
end)

---All parameters as one vector, in their order; gradients flow through it.
---@param params ampl.Tensor[]|ampl.nn.Module
---@return ampl.Tensor
utils.parameters_to_vector = args.declare("parameters_to_vector", {{"parameters", "parameters"}}, function(o)
  local list = {}
  for i, p in ipairs(parameters("parameters_to_vector", o.parameters)) do list[i] = p:reshape(-1) end
  if #list == 0 then raise("EARG", "parameters_to_vector", "there are no parameters") end
  return core.cat(list, 1)
end)

---Writes a vector back into the parameters.
---@param vector ampl.Tensor
---@param params ampl.Tensor[]|ampl.nn.Module
utils.vector_to_parameters = args.declare("vector_to_parameters", {
  {"vector", "tensor"}, {"parameters", "parameters"},
}, function(o)
  local vector, list, n = o.vector, parameters("vector_to_parameters", o.parameters), 0
  for _, p in ipairs(list) do n = n + p:numel() end
  if vector:dim() ~= 1 or vector:numel() ~= n then
    raise("ESHAPE", "vector_to_parameters", ("the parameters have %d entries, the vector is {%s}"):format(
      n, table.concat(vector.shape, ", ")))
  end
  local at = 1
  for _, p in ipairs(list) do
    local size = p:numel()
    p:detach():copy_(vector:detach():narrow(1, at, size):view(p.shape))
    at = at + size
  end
end)

---How the gradients of a model look: largest and mean magnitude over finite entries, share of zeros, number of entries
---that are not finite.  Parameters without a gradient are left out.
---@param model ampl.nn.Module
---@return table<string, {max: number, mean_abs: number, zero: number, nonfinite: integer}>
utils.grad_stats = args.declare("grad_stats", {{"model", "module"}}, function(o)
  local out = {}
  for name, p in o.model:named_parameters() do
    local _ <close> = core.scope_open()
    local g = p.grad
    if g then
      local x = g:detach()
      local n, good = x:numel(), x:isfinite()
      local bad = n - good:count_nonzero():item()
      local a = core.where(good, x:abs(), core.zeros_like(x)):to(x.dtype == "f64" and "f64" or "f32")
      out[name] = {
        max = n > 0 and a:max():item() or 0.0, mean_abs = n > bad and a:sum():item() / (n - bad) or 0.0,
        zero = n > 0 and (n - x:count_nonzero():item()) / n or 0.0, nonfinite = math.tointeger(bad),
      }
    end
  end
  return out
end)

return utils
