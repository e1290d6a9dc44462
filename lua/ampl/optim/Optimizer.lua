-- What all optimisers share: parameter groups, state, and the step, which is one fused op for each group.
--
-- An optimiser is a specification:
--   params   its options, as in ampl.args
--   op       the name of the internal op that does the step
--   states   function(group) -> names of the tensors kept for each parameter, in the op's order
--   counts   names of the numbers kept for each parameter, with their value at the start
--   options  function(group) -> the op's options
--   start    function(name, group) -> the value that a state starts from, 0 without it
--   first    options of the op for parameters whose state is new
--   eager    the state is made with the optimiser, not at the first gradient
--   check    function(class name, group): raises for values that make no sense

local core = require "ampl.core"
local Class = require "ampl.class"
local args = require "ampl.args"
local listing = require "ampl.listing"
local parameters = require "ampl.nn.parameters"
local raise = require "ampl.raise"

local is_tensor = core.is_tensor

---@class ampl.optim.Optimizer : ampl.Class
---@field param_groups table[] live tables: params and options
---@field state table<ampl.Tensor, table> what is kept for each parameter
---@field defaults table
local Optimizer = Class:extend("Optimizer")

---Makes a class of optimisers.
---@param name string
---@param spec table
---@return ampl.optim.Optimizer
function Optimizer:define(name, spec)
  local class = self:extend(name)
  class.spec = spec
  class.params = {{"params", "parameters"}, table.unpack(spec.params)}
  class.parser = args.parser(spec.params)
  return class
end

-- Makes what is still missing of p's state; true when something was.  It outlives the scope that the step runs in.
local function prepare(self, p, group)
  local s = self.state[p]
  if not s then
    s = {}
    self.state[p] = s
  end
  local wide, fresh = p.dtype == "f64" and "f64" or "f32", false
  for _, name in ipairs(self.spec.states(group)) do
    if not s[name] then
      local start = self.spec.start and self.spec.start(name, group) or 0
      s[name], fresh = core.full_like(p, start, {dtype = wide}):keep(), true
    end
  end
  for _, count in ipairs(self.spec.counts or {}) do
    s[count[1]] = s[count[1]] or core.full({}, count[2], {dtype = wide, device = p.device}):keep()
  end
  return fresh
end

local function is_group(v)
  return type(v) == "table" and args.is_plain(v) and v.params ~= nil
end

local floats = {f32 = true, f16 = true, bf16 = true, f64 = true}

-- The names that a group has for its parameters, as a list of them.
local function check_names(self, names, n)
  if names == nil or names == false then return nil end
  if type(names) ~= "table" or #names ~= n then
    raise("EARG", self.name, ("param_names must be a list of %d names, not %s"):format(n, args.shown(names)))
  end
  for i, name in ipairs(names) do
    if type(name) ~= "string" then
      raise("EARG", self.name, ("entry %d of param_names must be a string, not %s"):format(i, args.shown(name)))
    end
  end
  return {table.unpack(names)}
end

---@param params ampl.Tensor[]|ampl.nn.Module|table[] a list of tensors, a module, or a list of {params = ..., lr = ...}
function Optimizer:init(params, ...)
  if not self.spec then
    raise("EARG", self.name, "is what all optimizers derive from, and no optimizer: take one of ampl.optim, as SGD")
  end
  self.defaults = self.parser:read(self.name, "", ...)
  self.param_groups, self.state = listing({}), {}
  if type(params) == "table" and args.is_plain(params) and is_group(params[1]) then
    for _, group in ipairs(params) do self:add_param_group(group) end
  elseif is_group(params) then
    raise("EARG", self.name, "parameter groups come in a list: {{params = ..., lr = ...}}")
  else
    if params == nil then parameters(self.name, params) end
    self:add_param_group({params = params})
  end
end

---Adds parameters with options of their own; what is not given is the optimiser's.
---@param group table {params = ..., lr = ...}
function Optimizer:add_param_group(group)
  if not is_group(group) then
    raise("EARG", self.name, ("a parameter group is a table {params = ..., options}, not %s"):format(args.shown(group)))
  end
  local list, names = parameters(self.name, group.params)
  if #list == 0 then
    raise("EARG", self.name, ("parameter group %d holds no parameters"):format(#self.param_groups + 1))
  end
  names = check_names(self, group.param_names, #list) or names
  local seen = {}
  for _, g in ipairs(self.param_groups) do
    for _, p in ipairs(g.params) do seen[p] = true end
  end
  for i, p in ipairs(list) do
    if seen[p] then raise("EARG", self.name, ("parameter %d of the group is in the optimizer already"):format(i)) end
    seen[p] = true
    if not p.is_leaf then
      raise("EARG", self.name, ("parameter %d is the result of an op; only leaves can be trained"):format(i))
    end
    if not floats[p.dtype] then
      raise("EDTYPE", self.name, ("parameter %d has dtype %s; only floats can be trained"):format(i, p.dtype))
    end
  end
  local given = {}
  for k, v in pairs(self.defaults) do given[k] = v end
  for k, v in pairs(group) do
    if k ~= "params" and k ~= "param_names" then given[k] = v end
  end
  local options = self.parser:complete(self.name, ("parameter group %d: "):format(#self.param_groups + 1), given)
  for k, v in pairs(options) do                         -- groups share no tables
    if type(v) == "table" then options[k] = {table.unpack(v)} end
  end
  self:check(options)
  options.params, options.param_names = list, names     -- names: for messages
  if self.spec.eager then
    for _, p in ipairs(list) do prepare(self, p, options) end
  end
  self.param_groups[#self.param_groups + 1] = listing(options)
end

-- Raises for options that do not go together.
---@protected
function Optimizer:check(group)
  if self.spec.check then self.spec.check(self.name, group) end
end

-- Raises unless the groups, which anyone may write to, still hold parameters, and what else `each` asks of a group.
local function verify_groups(self, each)
  if type(self.param_groups) ~= "table" then
    raise("EARG", self.name, ("param_groups must be a list of parameter groups, not %s"):format(
      args.shown(self.param_groups)))
  end
  for g, group in ipairs(self.param_groups) do
    if type(group) ~= "table" or type(group.params) ~= "table" then
      raise("EARG", self.name, ("params of parameter group %d must be a list of tensors, not %s"):format(
        g, args.shown(type(group) == "table" and group.params or group)))
    end
    for i, p in ipairs(group.params) do
      if not is_tensor(p) then
        raise("EARG", self.name, ("entry %d of params of parameter group %d must be a tensor, not %s"):format(
          i, g, args.shown(p)))
      end
    end
    if each then each(self, group, g) end
  end
end

local function verify_options(self, group, g)
  self.parser:verify(self.name, "parameter group " .. g, group)
  self:check(group)
end

---Raises unless parameters and options, which anyone may write to, are of their kinds and in their ranges.
---@protected
function Optimizer:verify() verify_groups(self, verify_options) end

---The same for parameters alone.
---@protected
function Optimizer:verify_params() verify_groups(self) end

local read_zero_grad = args.method("zero_grad", {{"set_to_none", "boolean", true}})
local read_state = args.method("load_state_dict", {{"state", "dict"}})

---Drops the gradients, or sets them to 0.
---@param options? boolean|{set_to_none: boolean}
function Optimizer:zero_grad(options)
  local keep = read_zero_grad(self, options).set_to_none == false
  verify_groups(self)
  local _ <close> = core.scope_open()
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do
      if not keep then
        p.grad = nil
      else
        local g = p.grad
        if g then p.grad = g:detach():zero_() end
      end
    end
  end
end

-- One call of the fused op: the parameters, their gradients and states, list after list.
local function run(self, group, list, extra)
  local n = #list
  if n == 0 then return end
  local tensors = {}
  for i, p in ipairs(list) do
    tensors[i], tensors[n + i] = p, p.grad
  end
  local at = 2 * n
  local function column(name)
    for i, p in ipairs(list) do tensors[at + i] = self.state[p][name] end
    at = at + n
  end
  for _, name in ipairs(self.spec.states(group)) do column(name) end
  for _, count in ipairs(self.spec.counts or {}) do column(count[1]) end
  local options = self.spec.options(group)
  options.n, options.lr, options.weight_decay, options.maximize = n, group.lr, group.weight_decay, group.maximize
  for k, v in pairs(extra or {}) do options[k] = v end
  core.internal[self.spec.op](self.inv_scale, self.found_inf, tensors, options)
end

---@protected
function Optimizer:step_group(group)
  local old, new = {}, {}
  for _, p in ipairs(group.params) do
    if p.grad then
      local list = prepare(self, p, group) and self.spec.first and new or old
      list[#list + 1] = p
    end
  end
  run(self, group, old)
  run(self, group, new, self.spec.first)
end

---One step.  A closure computes the loss anew, runs backward and returns the loss.
---A parameter without a gradient is left alone: no decay, no state, no count.
---@param closure? fun(): ampl.Tensor
---@return ampl.Tensor? loss what the closure returned
function Optimizer:step(closure)
  local loss
  if closure ~= nil then args.callable(self.name, "step: closure", closure) end
  self:verify()
  if closure then
    local _ <close> = core.enter_grad(true)
    loss = closure()
  end
  local _ <close> = core.scope_open()                   -- gradients are let go as soon as they have been read
  for _, group in ipairs(self.param_groups) do self:step_group(group) end
  return loss
end

---The state as PyTorch lays it out: `state`, one table for each parameter, counted through all groups, and
---`param_groups`, whose `params` are these numbers.  The tensors are those of the optimiser, not copies.
---@return table
function Optimizer:state_dict()
  local out, n = {state = {}, param_groups = {}}, 0
  for g, group in ipairs(self.param_groups) do
    local copy = {}
    for k, v in pairs(group) do copy[k] = type(v) == "table" and {table.unpack(v)} or v end
    copy.param_names = nil
    for i, p in ipairs(group.params) do
      n = n + 1
      copy.params[i] = n
      out.state[n] = {}
      for k, v in pairs(self.state[p] or {}) do out.state[n][k] = v end
    end
    out.param_groups[g] = copy
  end
  return listing(out)
end

-- A copy of a saved state for p: moments in the dtype that its steps are made in, counts (numbers, too) as tensors.
local function restored(self, saved, p)
  local dtype = p.dtype == "f64" and "f64" or "f32"
  local s, count = {}, {}
  for _, c in ipairs(self.spec.counts or {}) do count[c[1]] = true end
  for name, v in pairs(saved) do
    if type(v) ~= "userdata" then
      v = core.full({}, v, {dtype = dtype, device = p.device})
    else
      v = v:detach():to({device = p.device, dtype = not count[name] and dtype or nil}):clone()
    end
    s[name] = v:keep()
  end
  return next(s) and s or nil
end

-- Raises unless a saved group fits a group here; gives the numbers of its parameters.
local function check_saved(self, g, group, saved)
  local function bad(text, ...) raise("EARG", self.name, "load_state_dict: " .. text:format(...)) end
  if type(saved) ~= "table" or type(saved.params) ~= "table" then
    bad("param_groups[%d] must be a table with params, not %s", g, args.shown(saved))
  end
  if #saved.params ~= #group.params then
    bad("group %d has %d parameters in the state, %d here", g, #saved.params, #group.params)
  end
  for name, value in pairs(saved) do
    if self.parser:has(name) then
      self.parser:check(self.name, ("load_state_dict: %s of group %d"):format(name, g), name, value)
    end
  end
  return saved.params
end

-- Raises unless what was saved for parameter number n can be kept for p.
local function check_kept(self, group, p, n, saved)
  local function bad(text, ...) raise("EARG", self.name, "load_state_dict: " .. text:format(...)) end
  if type(saved) ~= "table" then bad("the state of parameter %d must be a table, not %s", n, args.shown(saved)) end
  for name, v in pairs(saved) do
    if not is_tensor(v) and type(v) ~= "number" then
      bad("%s of parameter %d must be a tensor or a number, not %s", tostring(name), n, args.shown(v))
    end
  end
  local function check_shape(name, shape)
    local v = saved[name]
    local got = v ~= nil and (is_tensor(v) and v.shape or {})
    if got and table.concat(got, ", ") ~= table.concat(shape, ", ") then
      bad("%s of parameter %d is {%s}, it must be {%s}", name, n, table.concat(got, ", "), table.concat(shape, ", "))
    end
  end
  for _, name in ipairs(self.spec.states(group)) do check_shape(name, p.shape) end
  for _, count in ipairs(self.spec.counts or {}) do check_shape(count[1], {}) end
end

---Takes a state over: options of the groups and what is kept for each parameter.  Nothing changes on an error.
---@param state table
function Optimizer:load_state_dict(state)
  local function bad(text, ...) raise("EARG", self.name, "load_state_dict: " .. text:format(...)) end
  state = read_state(self, state).state
  if type(state.param_groups) ~= "table" or type(state.state) ~= "table" then
    bad("no state of an optimizer: state and param_groups are missing")
  end
  verify_groups(self)
  if #state.param_groups ~= #self.param_groups then
    bad("%d parameter groups in the state, %d here", #state.param_groups, #self.param_groups)
  end
  local fresh, n = {}, 0
  for g, group in ipairs(self.param_groups) do
    local numbers = check_saved(self, g, group, state.param_groups[g])
    local options = setmetatable({}, {__index = function(_, k)      -- as the group will be
      local v = state.param_groups[g][k]
      if v == nil then return group[k] end
      return v
    end})
    self:check(options)
    for i, p in ipairs(group.params) do
      n = n + 1
      local kept = numbers[i] ~= nil and state.state[numbers[i]] or {}
      check_kept(self, options, p, n, kept)
      fresh[p] = restored(self, kept, p)
    end
  end
  self.state = fresh
  for g, group in ipairs(self.param_groups) do
    for k, v in pairs(state.param_groups[g]) do
      if k ~= "params" and k ~= "param_names" then group[k] = type(v) == "table" and {table.unpack(v)} or v end
    end
  end
end

local function describe(self)
  local lines = {self.name .. " ("}
  for g, group in ipairs(self.param_groups) do
    local names = {}
    for k in pairs(group) do
      if k ~= "params" and k ~= "param_names" then names[#names + 1] = k end
    end
    table.sort(names)
    for i, k in ipairs(names) do
      local v = group[k]
      if type(v) == "table" then
        local parts = {}
        for at, e in ipairs(v) do parts[at] = tostring(e) end
        v = "{" .. table.concat(parts, ", ") .. "}"
      end
      names[i] = k .. " = " .. tostring(v)
    end
    lines[#lines + 1] = ("  group %d: %d tensors, %s"):format(g, #group.params, table.concat(names, ", "))
  end
  lines[#lines + 1] = ")"
  return table.concat(lines, "\n")
end

function Optimizer:__tostring()
  local ok, text = pcall(describe, self)                -- anyone may write the groups
  return ok and text or self.name .. " (its param_groups are damaged)"
end

return Optimizer
