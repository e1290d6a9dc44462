-- Compares gradients with central differences.
--
-- The outputs are summed under fixed random weights, so one backward pass gives the whole gradient, and each element
-- of an input costs two evaluations.

local raise = require "ampl.raise"
local args = require "ampl.args"
local ampl = require "ampl"

local M = {}

local params = {
  {"fn", "callable"}, {"inputs", "inputs"}, {"eps", "number?", above = 0}, {"atol", "number", 1e-5, min = 0},
  {"rtol", "number", 1e-3, min = 0}, {"raise_exception", "boolean", true}, {"grad_outputs", "list?"},
}

local function is_float(t) return type(t) == "userdata" and t.dtype:find("f", 1, true) ~= nil end

local function list_of(inputs) return type(inputs) == "table" and inputs or {inputs} end

-- Calls fn(...) with the random stream where it was at the first call, so that random ops repeat.
local function repeater(fn)
  local state = ampl.get_rng_state()
  return function(...)
    ampl.set_rng_state(state)
    return fn(...)
  end
end

-- Numbers of magnitude 0.5 to 1.5, the same in every run.
local function weights()
  local s = 12345
  return function()
    s = (s * 1103515245 + 12345) & 0x7fffffff
    local v = 0.5 + (s >> 8) / (0x7fffffff >> 8)
    return (s >> 4) & 1 == 0 and v or -v
  end
end

local function filled(like, draw)
  local values = {}
  for i = 1, like:numel() do values[i] = draw() end
  return ampl.tensor(values, {dtype = like.dtype == "f64" and "f64" or "f32"}):view(like.shape):to(like.dtype)
end

-- The floating outputs that depend on an input, and a weight for each.
local function weighted(outputs, draw)
  local outs, cots = {}, {}
  for i = 1, outputs.n do
    local y = outputs[i]
    if is_float(y) and y.requires_grad then
      outs[#outs + 1] = y
      cots[#cots + 1] = filled(y, draw)
    end
  end
  return outs, cots
end

local function place(i, shape)
  local at, k = {}, i - 1
  for d = #shape, 1, -1 do
    at[d] = k % shape[d] + 1
    k = k // shape[d]
  end
  return "{" .. table.concat(at, ", ") .. "}"
end

local function flat(t)
  if t.ndim == 0 then return {t:item()} end
  return t:reshape(-1):totable()
end

-- The weighted sum of fn's outputs, as a number; `at` tells which outputs count.
local function evaluate(fn, inputs, counted, cots)
  local sum, k = 0, 0
  ampl.no_grad(function()
    local outputs = table.pack(fn(table.unpack(inputs)))
    for i = 1, outputs.n do
      if counted[i] then
        k = k + 1
        sum = sum + (outputs[i]:to("f64") * cots[k]:to("f64")):sum():item()
      end
    end
  end)
  return sum
end

-- nil, or what is wrong.
local function compare(fn, inputs, eps, atol, rtol)
  fn = repeater(fn)
  local draw, leaves = weights(), {}
  for i, x in ipairs(inputs) do
    if type(x) == "userdata" and x.requires_grad then leaves[#leaves + 1] = {x = x, at = i} end
  end
  if #leaves == 0 then return "no input requires a gradient" end
  local outputs = table.pack(fn(table.unpack(inputs)))
  local outs, cots = weighted(outputs, draw)
  if #outs == 0 then return "no output depends on an input that requires a gradient" end
  local counted = {}
  for i = 1, outputs.n do counted[i] = is_float(outputs[i]) and outputs[i].requires_grad end
  local xs = {}
  for i, l in ipairs(leaves) do xs[i] = l.x end
  local grads = table.pack(ampl.grad(outs, xs, {grad_outputs = cots, allow_unused = true}))
  for i, l in ipairs(leaves) do
    local x, values = l.x, flat(l.x:detach())
    local g = grads[i] and flat(grads[i]:detach()) or {}
    local function set()
      ampl.no_grad(function() x:copy_(ampl.tensor(values, {dtype = x.dtype}):view(x.shape)) end)
    end
    for e = 1, #values do
      local v = values[e]
      values[e] = v + eps
      set()
      local up = evaluate(fn, inputs, counted, cots)
      values[e] = v - eps
      set()
      local down = evaluate(fn, inputs, counted, cots)
      values[e] = v
      set()
      local numeric, analytic = (up - down) / (2 * eps), g[e] or 0
      local close = math.abs(numeric - analytic) <= atol + rtol * math.abs(numeric)      -- false for a NaN
      if not close then
        return ("input %d, element %s: the gradient is %.10g, differences give %.10g"):format(
          l.at, place(e, x.shape), analytic, numeric)
      end
    end
  end
end

local function verdict(op, why, opts)
  if not why then return true end
  if opts.raise_exception == false then return false, op .. ": " .. why end
  raise("EGRAD", op, why)
end

local function check_inputs(op, inputs, opts)
  for i, x in ipairs(inputs) do
    if type(x) == "userdata" and x.requires_grad and x.dtype ~= "f64" and not opts.eps then
      raise("EDTYPE", op, ("input %d is %s: differences need f64, or a larger eps"):format(i, x.dtype))
    end
  end
end

---Whether the gradients of fn with regard to every input that requires one agree with central differences; raises
---EGRAD naming the element when not.  fn may return several tensors; what is no float does not count.
---
---Options: eps (1e-6), atol (1e-5), rtol (1e-3), raise_exception (true; false: returns false and the text).
---@param fn fun(...): ...
---@param inputs ampl.Tensor|ampl.Tensor[] f64
---@param opts? table
---@return boolean ok
---@return string? why
M.gradcheck = args.declare("gradcheck", params, function(o)
  local inputs = list_of(o.inputs)
  check_inputs("gradcheck", inputs, o)
  return verdict("gradcheck", compare(o.fn, inputs, o.eps or 1e-6, o.atol, o.rtol), o)
end)

---The same for gradients of gradients: the function checked is the gradient of fn, a function of its inputs and of the
---weights of its outputs (grad_outputs; drawn if not given).
---@param fn fun(...): ...
---@param inputs ampl.Tensor|ampl.Tensor[] f64
---@param opts? table
---@return boolean ok
---@return string? why
M.gradgradcheck = args.declare("gradgradcheck", params, function(opts)
  local fn, inputs = opts.fn, list_of(opts.inputs)
  check_inputs("gradgradcheck", inputs, opts)
  local run = repeater(fn)
  local outs, cots = weighted(table.pack(run(table.unpack(inputs))), weights())
  if #outs == 0 then
    return verdict("gradgradcheck", "no output depends on an input that requires a gradient", opts)
  end
  for i, g in ipairs(opts.grad_outputs or {}) do cots[i] = g end
  local n, all = #inputs, {table.unpack(inputs)}
  for i, c in ipairs(cots) do all[n + i] = c:detach():requires_grad_(true) end

  local function gradient(...)
    local values = {...}
    local outputs, ys, gs, xs = table.pack(run(table.unpack(values, 1, n))), {}, {}, {}
    for i = 1, outputs.n do
      if is_float(outputs[i]) and outputs[i].requires_grad then
        ys[#ys + 1] = outputs[i]
        gs[#gs + 1] = values[n + #ys]
      end
    end
    for i = 1, n do
      if type(values[i]) == "userdata" and values[i].requires_grad then xs[#xs + 1] = values[i] end
    end
    local grads = table.pack(ampl.grad(ys, xs, {grad_outputs = gs, create_graph = true, allow_unused = true}))
    local out = {}
    for i = 1, #xs do
      if grads[i] then out[#out + 1] = grads[i] end
    end
    return table.unpack(out)
  end

  -- Differences are taken without recording, but a gradient needs its graph.
  local function recorded(...)
    local values = table.pack(...)
    return ampl.enable_grad(function() return gradient(table.unpack(values, 1, values.n)) end)
  end

  return verdict("gradgradcheck", compare(recorded, all, opts.eps or 1e-6, opts.atol, opts.rtol), opts)
end)

return M
