-- LBFGS: quasi-Newton steps from the last gradients (Liu and Nocedal 1989); step needs a closure.

local core = require "ampl.core"
local Optimizer = require "ampl.optim.Optimizer"
local option = require "ampl.optim.option"
local search = require "ampl.optim.line_search"
local args = require "ampl.args"
local raise = require "ampl.raise"

---@class ampl.optim.LBFGS : ampl.optim.Optimizer
local LBFGS = Optimizer:define("LBFGS", {
  params = {
    option("lr", 1.0), {"max_iter", "integer", 20, min = 1}, {"max_eval", "integer?", min = 1},
    {"tolerance_grad", "number", 1e-7, min = 0}, {"tolerance_change", "number", 1e-9, min = 0},
    {"history_size", "integer", 100, min = 1},
    {"line_search_fn", "string?", choices = {"strong_wolfe"}},
  },
  states = function() return {} end,
})

function LBFGS:init(...)
  Optimizer.init(self, ...)
  if #self.param_groups > 1 then raise("EARG", self.name, "takes one parameter group") end
  self.memory = {n_iter = 0, func_evals = 0, y = {}, s = {}}
end

local function flat_gradient(params)
  local parts = {}
  for i, p in ipairs(params) do
    local g = p.grad
    parts[i] = g and g:detach():reshape(-1) or core.zeros({p:numel()}, {dtype = p.dtype, device = p.device})
  end
  return core.cat(parts, 1)
end

-- params += t * direction
local function move(params, direction, t)
  local at = 1
  for _, p in ipairs(params) do
    local n = p:numel()
    p:detach():add_(direction:narrow(1, at, n):view(p.shape) * t)
    at = at + n
  end
end

local function dot(a, b) return (a * b):sum():item() end
local function largest(x) return x:abs():max():item() end

-- The inverse Hessian, as far as the history knows it, times -g.
local function direction(m, g)
  local q, alpha = g:neg(), {}
  for i = #m.s, 1, -1 do
    alpha[i] = dot(m.s[i], q) / dot(m.y[i], m.s[i])
    q = q - m.y[i] * alpha[i]
  end
  q = q * m.scale
  for i = 1, #m.s do
    q = q + m.s[i] * (alpha[i] - dot(m.y[i], q) / dot(m.y[i], m.s[i]))
  end
  return q
end

local function remember(m, g, size)
  local y, s = g - m.g, m.d * m.t
  local ys = dot(y, s)
  if ys <= 1e-10 then return end                        -- no curvature to learn from
  if #m.y == size then
    table.remove(m.y, 1)
    table.remove(m.s, 1)
  end
  m.y[#m.y + 1], m.s[#m.s + 1], m.scale = y:keep(), s:keep(), ys / dot(y, y)
end

-- One iteration from a point with loss f and gradient g: the new ones and the number of evaluations; nil at the end.
local function iterate(self, group, evaluate, f, g, last)
  local m, params = self.memory, group.params
  m.n_iter = m.n_iter + 1
  if m.n_iter == 1 then
    m.d, m.scale, m.t = g:neg():keep(), 1.0, math.min(1, 1 / g:abs():sum():item()) * group.lr
  else
    remember(m, g, group.history_size)
    m.d, m.t = direction(m, g):keep(), group.lr
  end
  m.g = g:keep()
  local slope = dot(g, m.d)
  if slope > -group.tolerance_change then return nil end
  if not group.line_search_fn then
    move(params, m.d, m.t)
    if last then return f, g, 0 end
    f, g = evaluate()
    return f, g, 1
  end
  local before = {}
  for i, p in ipairs(params) do before[i] = p:detach():clone() end
  local function restore()
    for i, p in ipairs(params) do p:detach():copy_(before[i]) end
  end
  local point, evaluations = search(function(t)
    move(params, m.d, t)
    local loss, gradient = evaluate()
    restore()
    return {t = t, f = loss, g = gradient, slope = dot(gradient, m.d)}
  end, {t = 0, f = f, g = g, slope = slope}, m.t, largest(m.d), 1e-9)
  m.t = point.t
  move(params, m.d, m.t)
  return point.f, point.g, evaluations
end

---Up to max_iter iterations.  The closure computes the loss anew, runs backward and returns the loss.
---@param closure fun(): ampl.Tensor
---@return ampl.Tensor loss of the first call
function LBFGS:step(closure)
  if type(closure) ~= "function" then
    raise("EARG", self.name, "step: needs a closure, a function that computes the loss, not " .. args.shown(closure))
  end
  self:verify()
  local group, m = self.param_groups[1], self.memory
  local function evaluate()
    local loss
    do
      local _ <close> = core.enter_grad(true)
      loss = closure()
    end
    if not core.is_tensor(loss) or loss:numel() ~= 1 then
      raise("EARG", self.name, "step: the closure must return the loss, a tensor of one element, not " ..
            args.shown(loss))
    end
    return loss:detach():item(), flat_gradient(group.params):clone(), loss
  end
  local f, g, first = evaluate()
  m.func_evals = m.func_evals + 1
  if largest(g) <= group.tolerance_grad then return first end
  local calls, most = 1, group.max_eval or group.max_iter * 5 // 4
  for i = 1, group.max_iter do
    local before = f
    local loss, gradient, n = iterate(self, group, evaluate, f, g, i == group.max_iter)
    if not loss then break end
    f, g, calls, m.func_evals = loss, gradient, calls + n, m.func_evals + n
    if calls >= most or largest(g) <= group.tolerance_grad or largest(m.d) * math.abs(m.t) <= group.tolerance_change or
       math.abs(f - before) < group.tolerance_change then
      break
    end
  end
  return first
end

local function copied(v)
  if type(v) == "userdata" then return v:clone():keep() end
  if type(v) ~= "table" then return v end
  local out = {}
  for k, x in pairs(v) do out[k] = copied(x) end
  return out
end

---The state holds the history as one table, under `memory`.
function LBFGS:state_dict()
  local state = Optimizer.state_dict(self)
  state.memory = copied(self.memory)
  return state
end

-- Raises unless a saved history is one for these parameters.
local function check_memory(self, m)
  local function bad(text, ...) raise("EARG", self.name, "load_state_dict: " .. text:format(...)) end
  if type(m) ~= "table" or type(m.y) ~= "table" or type(m.s) ~= "table" or #m.y ~= #m.s then
    bad("no state of LBFGS: memory must hold the lists y and s")
  end
  local n = 0
  for _, p in ipairs(self.param_groups[1].params) do n = n + p:numel() end
  local function check(name, v)
    if not core.is_tensor(v) or v:numel() ~= n then
      bad("%s of memory must be a tensor of %d elements, not %s", name, n, args.shown(v))
    end
  end
  for i = 1, #m.y do
    check("y", m.y[i])
    check("s", m.s[i])
  end
  for _, name in ipairs({"n_iter", "func_evals"}) do
    if math.type(m[name]) ~= "integer" then
      bad("%s of memory must be an integer, not %s", name, args.shown(m[name]))
    end
  end
  if m.n_iter == 0 then return end
  check("d", m.d)
  check("g", m.g)
  for _, name in ipairs({"t", "scale"}) do
    if type(m[name]) ~= "number" then bad("%s of memory must be a number, not %s", name, args.shown(m[name])) end
  end
end

function LBFGS:load_state_dict(state)
  if type(state) ~= "table" then
    raise("EARG", self.name, "load_state_dict: state must be a table, not " .. args.shown(state))
  end
  self:verify_params()
  check_memory(self, state.memory)
  Optimizer.load_state_dict(self, state)
  self.memory = copied(state.memory)
end

return LBFGS
