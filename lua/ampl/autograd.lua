-- Grad modes, functions with a backward of their own, anomaly mode.

local core = require "ampl.core"
local arguments = require "ampl.args"
local raise = require "ampl.raise"

local autograd = {}

-- A mode as a block: with a function it runs it, without it gives a value to be closed.
local function block(name, enter, on)
  return function(fn, ...)
    if fn == nil then return enter(on) end
    arguments.callable(name, "fn", fn)
    local _ <close> = enter(on)
    return fn(...)
  end
end

---Ops record no graph: ampl.no_grad(fn, ...) or `local _ <close> = ampl.no_grad()`.
autograd.no_grad = block("no_grad", core.enter_grad, false)
---Ops record a graph again, inside no_grad.
autograd.enable_grad = block("enable_grad", core.enter_grad, true)
---As no_grad; what is made inside can never become part of a graph.
autograd.inference_mode = block("inference_mode", core.enter_inference, true)

-- ------------------------------------------------------------------------------------------------ Function --------

---What a Function's forward and backward share.
---@class ampl.FunctionContext
---@field needs_input_grad boolean[]
local Context = {}
Context.__index = Context

---Keeps tensors for backward: the only place where outputs may be kept.
function Context:save(...)
  local saved = table.pack(...)
  local versions = {}
  for i = 1, saved.n do
    local x = saved[i]
    if core.is_tensor(x) then
      versions[i] = x._version
    elseif x ~= nil then
      raise("EARG", "Function", ("ctx:save takes tensors, argument %d is a %s"):format(i, type(x)))
    end
  end
  rawset(self, "_saved", saved)
  rawset(self, "_versions", versions)
end

---The tensors that were saved.
function Context:saved()
  local saved = rawget(self, "_saved")
  if rawget(self, "_freed") then
    raise("EGRAD", "Function", "backward through Function a second time: what it saved was freed by the first; give "
      .. "the first one {retain_graph = true}")
  end
  if not saved then return end
  for i = 1, saved.n do
    if saved[i] and saved[i]._version ~= self._versions[i] then
      raise("EGRAD", "Function", ("saved tensor %d was written in place since; save a copy (x:clone())"):format(i))
    end
  end
  return table.unpack(saved, 1, saved.n)
end

-- The tensors among the arguments, their places, and whether any wants a gradient.
local function tensors_of(args)
  local list, place, wants = {}, {}, false
  for i = 1, args.n do
    if core.is_tensor(args[i]) then
      list[#list + 1] = args[i]
      place[#list] = i
      wants = wants or args[i].requires_grad
    end
  end
  return list, place, wants and core.is_grad_enabled()
end

-- An output kept in ctx's fields would hold its own graph for ever.
local function check_fields(ctx, outputs)
  for key, value in pairs(ctx) do
    for i = 1, outputs.n do
      if core.is_tensor(value) and value == outputs[i] then
        raise("EGRAD", "Function",
              ("ctx.%s holds an output, which would never be freed; use ctx:save(...)"):format(key))
      end
    end
  end
end

-- An output that is an operand, saved, or an output before, gets a header of its own: the graph does not hold itself,
-- and each is one result of the node.
local function own_outputs(outputs, inputs, saved)
  for i = 1, outputs.n do
    for _, x in ipairs(inputs) do
      if core.is_tensor(outputs[i]) and outputs[i] == x then outputs[i] = x:detach() end
    end
    for k = 1, saved and saved.n or 0 do
      if core.is_tensor(saved[k]) and saved[k] == outputs[i] then saved[k] = outputs[i]:detach():keep() end
    end
    for k = 1, i - 1 do
      if core.is_tensor(outputs[i]) and outputs[i] == outputs[k] then outputs[i] = outputs[i]:detach() end
    end
    if core.is_tensor(outputs[i]) and outputs[i].requires_grad then outputs[i] = outputs[i]:detach() end
  end
end

-- What the node calls: gradients of the outputs -> one for each tensor among the arguments; without gradients it lets
-- go of what was saved.  It holds no operand itself.
local function backward_of(spec, ctx, nargs, list, place)
  local dtypes = {}
  for k, x in ipairs(list) do dtypes[k] = x.dtype end
  return function(dy)
    if not dy then
      rawset(ctx, "_freed", rawget(ctx, "_saved") ~= nil)
      rawset(ctx, "_saved", nil)
      return
    end
    local got = table.pack(spec.backward(ctx, table.unpack(dy, 1, dy.n)))
    if got.n > nargs then
      raise("EGRAD", "Function", ("backward gave %d gradients for %d arguments of forward"):format(got.n, nargs))
    end
    local dx = {}
    for k, i in ipairs(place) do
      local g = got[i]
      if g ~= nil and not core.is_tensor(g) then
        raise("EGRAD", "Function", ("gradient %d is a %s, not a tensor"):format(i, type(g)))
      end
      dx[k] = g and g:to(dtypes[k])
    end
    return dx
  end
end

local function call(spec, ...)
  local args = table.pack(...)
  local list, place, wants = tensors_of(args)
  local ctx = setmetatable({needs_input_grad = {}}, Context)
  for i = 1, args.n do ctx.needs_input_grad[i] = core.is_tensor(args[i]) and args[i].requires_grad end
  local outputs
  do
    local _ <close> = core.enter_grad(false)
    outputs = table.pack(spec.forward(ctx, ...))
  end
  check_fields(ctx, outputs)
  if not wants then return table.unpack(outputs, 1, outputs.n) end
  own_outputs(outputs, list, rawget(ctx, "_saved"))
  local results = {}
  for i = 1, outputs.n do
    if core.is_tensor(outputs[i]) then results[#results + 1] = outputs[i] end
  end
  if #results < outputs.n then
    raise("EGRAD", "Function", "forward must return tensors only when a gradient is wanted")
  end
  core.record_function(list, results, backward_of(spec, ctx, args.n, list, place))
  return table.unpack(outputs, 1, outputs.n)
end

local Function = {__call = call}
function Function.__tostring() return "Function (a forward and a backward)" end

---A function with a backward of its own:
---`local f = ampl.Function{forward = function(ctx, x) ... end, backward = function(ctx, dy) ... end}; y = f(x)`.
---backward returns one gradient, or nil, for each argument of forward; each is cast to that argument's dtype.
---@param spec {forward: function, backward: function}
function autograd.Function(spec)
  if type(spec) ~= "table" or type(spec.forward) ~= "function" or type(spec.backward) ~= "function" then
    raise("EARG", "Function", "a table {forward = function, backward = function} is needed")
  end
  return setmetatable({forward = spec.forward, backward = spec.backward}, Function)
end

-- ------------------------------------------------------------------------------------------------ anomaly ---------

local anomaly = {on = false}

---Whether backward stops at the first bad gradient, naming the op, the place of its forward call, the value and its
---index.
---@param on boolean
---@param opts? {check_nan: boolean, check_inf: boolean, scaled: boolean}
autograd.set_detect_anomaly = arguments.declare("set_detect_anomaly", {
  {"on", "boolean"}, {"check_nan", "boolean", true}, {"check_inf", "boolean", false}, {"scaled", "boolean", false},
}, function(o)
  anomaly = {on = o.on, nan = o.check_nan, inf = o.check_inf, scaled = o.scaled}
  core.set_anomaly(o.on, anomaly.nan, anomaly.inf, anomaly.scaled)
end)

---Runs fn(...) in anomaly mode.
function autograd.detect_anomaly(fn, ...)
  arguments.callable("detect_anomaly", "fn", fn)
  local before = anomaly
  local restore <close> = setmetatable({}, {__close = function()
    anomaly = before
    core.set_anomaly(before.on, before.nan, before.inf, before.scaled)
  end})
  autograd.set_detect_anomaly(true)
  local _ = restore
  return fn(...)
end

return autograd
