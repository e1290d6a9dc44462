-- Module: the base of all layers and models.
--
--   local Net = nn.Module:extend("Net")
--   function Net:init(n) self.fc = nn.Linear(n, 10) end
--   function Net:forward(x) return self.fc(x):relu() end
--   local net = Net(20)            -- constructs
--   local y = net(x)               -- calls forward, and hooks
--
-- Parameters, buffers and children are fields.  What a module knows of its fields stands in its field `_module`:
-- the order of first assignment and which names are parameters and buffers.

local core = require "ampl.core"
local args = require "ampl.args"
local listing = require "ampl.listing"
local state = require "ampl.nn.state"
local Parameter = require "ampl.nn.Parameter"
local raise = require "ampl.raise"

local is_tensor = core.is_tensor

---@class ampl.nn.Module
---@field name string of the class
---@field training boolean
---@overload fun(...): any
local Module = {name = "Module"}
Module.__index = Module

local function is_module(v)
  return type(v) == "table" and rawget(v, "_module") ~= nil
end

local class_meta = {}
function class_meta.__call(class, ...)
  local self = setmetatable({}, class)
  rawset(self, "_module", {order = {}, known = {}, parameters = {}, buffers = {}})
  rawset(self, "training", true)
  self:init(...)
  return self
end
function class_meta.__tostring(class) return "class " .. class.name end
setmetatable(Module, class_meta)

---A class that inherits from this one: give it init and forward.
---@param name string
---@return ampl.nn.Module
function Module:extend(name)
  if type(name) ~= "string" then
    raise("EARG", "Module", "extend: name must be a string, the name of the class, not " .. args.shown(name))
  end
  local class = {name = name}
  for key, value in pairs(self) do                      -- metamethods are not looked up through __index
    if type(key) == "string" and key:sub(1, 2) == "__" then class[key] = value end
  end
  class.__index = class
  return setmetatable(class, {__index = self, __call = class_meta.__call, __tostring = class_meta.__tostring})
end

---A class of layers whose arguments are `params` (see ampl.args); self:options(...) in its init reads them.
---@param name string
---@param params table
---@return ampl.nn.Module
function Module:define(name, params)
  local class = self:extend(name)
  class.params, class.parser = params, args.parser(params)
  return class
end

---Reads the arguments of a layer.
---@protected
---@return table
function Module:read(...) return self.parser:read(self.name, "", ...) end

---Reads the arguments of a layer; they are also what tostring shows.
---@protected
---@return table
function Module:options(...)
  local o = self:read(...)
  rawset(self, "_options", o)
  return o
end

function Module:init() end

function Module:forward()
  raise("ESTATE", self.name, "has no forward")
end

-- ---------------------------------------------------------------------------------------------------- fields ------

local function register(self, key)
  local m = rawget(self, "_module")
  if not m.known[key] then
    m.known[key] = true
    m.order[#m.order + 1] = key
  end
end

function Module:__newindex(key, value)
  if is_tensor(value) then
    if value.requires_grad or Parameter.is(value) then
      register(self, key)
      rawget(self, "_module").parameters[key] = true
      value:keep()                                      -- a module's tensors outlive the scope that it is made in
    end
  elseif is_module(value) then
    register(self, key)
  end
  rawset(self, key, value)
end

-- A field that was assigned before, as another kind of thing, does not come through __newindex.
local function catch_up(self)
  local m, late = rawget(self, "_module"), {}
  for key, value in next, self do
    if is_tensor(value) then
      if not m.buffers[key] and not m.parameters[key] and (value.requires_grad or Parameter.is(value)) then
        m.parameters[key] = true
        late[#late + 1] = key
      end
    elseif not m.known[key] and is_module(value) then
      late[#late + 1] = key
    end
  end
  table.sort(late, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(late) do register(self, key) end
end

---The fields of one kind, without those of children, as a list of {name, value, key}.
---@param kind "parameters"|"buffers"|"children"
---@return table[]
function Module:members(kind)
  catch_up(self)
  local m, out = rawget(self, "_module"), {}
  for _, key in ipairs(m.order) do
    local value = rawget(self, key)
    local wanted
    if kind == "children" then wanted = is_module(value) else wanted = is_tensor(value) and m[kind][key] end
    if wanted then
      out[#out + 1] = {math.type(key) == "integer" and tostring(key - 1) or tostring(key), value, key}
    end
  end
  return out
end

-- Raises for the names of what every module has.
local function check_name(self, method, name)
  if name == "" or name == "_module" or name:find(".", 1, true) or type(Module[name]) == "function" then
    raise("EVALUE", self.name, ("%s: name must not be empty, hold a dot or be that of a method, but is %s"):format(
      method, args.shown(name)))
  end
end

---A tensor that is state but no parameter, as the running mean of a batch norm.
---@param name string
---@param tensor? ampl.Tensor
---@param persistent? boolean
---@param options? {persistent: boolean, optional: boolean} not persistent: not in the state dict; optional: a
---state dict without it is complete
Module.register_buffer = args.declare_method("register_buffer", {
  {"name", "string"}, {"tensor", "tensor?"}, {"persistent", "boolean", true}, {"optional", "boolean", false},
}, function(self, o)
  check_name(self, "register_buffer", o.name)
  register(self, o.name)
  local m = rawget(self, "_module")
  m.parameters[o.name] = nil
  m.buffers[o.name] = {persistent = o.persistent, optional = o.optional}
  rawset(self, o.name, o.tensor and o.tensor:keep())
end)

---@param name string
---@param tensor? ampl.Tensor
Module.register_parameter = args.declare_method("register_parameter", {
  {"name", "string"}, {"tensor", "tensor?"},
}, function(self, o)
  check_name(self, "register_parameter", o.name)
  local tensor = o.tensor
  if not tensor then return end
  self[o.name] = Parameter.is(tensor) and tensor or Parameter(tensor, {requires_grad = tensor.requires_grad})
end)

---@param name string|integer
---@param module ampl.nn.Module
Module.add_module = args.declare_method("add_module", {{"name", "field"}, {"module", "module"}}, function(self, o)
  if type(o.name) == "string" then check_name(self, "add_module", o.name) end
  self[o.name] = o.module
end)

-- ---------------------------------------------------------------------------------------------------- walking -----

local read_prefix = args.method("named_modules", {{"prefix", "string", ""}})

---@param prefix? string put before every name
---@param all? boolean a module that stands in several places under each of its names
---@return fun(): string?, ampl.nn.Module? an iterator over names and modules, this one first
function Module:named_modules(prefix, all)
  if prefix ~= nil then prefix = read_prefix(self, prefix).prefix end
  local list, seen = {}, {}
  local inside = {}                                     -- the modules that hold the one that is looked at
  local function walk(m, name)
    if seen[m] and not all then return end
    if inside[m] then raise("ESTATE", m.name, ("the module holds itself, as %s: its state has no end"):format(name)) end
    seen[m], inside[m] = true, true
    list[#list + 1] = {name, m}
    for _, child in ipairs(m:members("children")) do
      walk(child[2], name == "" and child[1] or name .. "." .. child[1])
    end
    inside[m] = nil
  end
  walk(self, prefix or "")
  local i = 0
  return function()
    i = i + 1
    if list[i] then return list[i][1], list[i][2] end
  end
end

---This module and all below it, each once.
---@return ampl.nn.Module[]
function Module:modules()
  local out = {}
  for _, m in self:named_modules() do out[#out + 1] = m end
  return out
end

---@return ampl.nn.Module[]
function Module:children()
  local out = {}
  for i, child in ipairs(self:members("children")) do out[i] = child[2] end
  return out
end

---@return fun(): string?, ampl.nn.Module?
function Module:named_children()
  local list, i = self:members("children"), 0
  return function()
    i = i + 1
    if list[i] then return list[i][1], list[i][2] end
  end
end

-- The tensors of a kind in all modules: {name, tensor, module, key}; each once unless `all`.
local function tensors(self, kind, all)
  local out, seen = {}, {}
  for prefix, m in self:named_modules("", all) do
    for _, member in ipairs(m:members(kind)) do
      if all or not seen[member[2]] then
        seen[member[2]] = true
        out[#out + 1] = {prefix == "" and member[1] or prefix .. "." .. member[1], member[2], m, member[3]}
      end
    end
  end
  return out
end

local function named(list)
  local i = 0
  return function()
    i = i + 1
    if list[i] then return list[i][1], list[i][2] end
  end
end

local function values(list)
  local out = {}
  for i, item in ipairs(list) do out[i] = item[2] end
  return out
end

---Every parameter once, in a fixed order.
---@return ampl.Tensor[]
function Module:parameters() return values(tensors(self, "parameters")) end
---@return ampl.Tensor[]
function Module:buffers() return values(tensors(self, "buffers")) end
---@return fun(): string?, ampl.Tensor?
function Module:named_parameters() return named(tensors(self, "parameters")) end
---@return fun(): string?, ampl.Tensor?
function Module:named_buffers() return named(tensors(self, "buffers")) end

-- ---------------------------------------------------------------------------------------------------- state -------

-- Parameters and buffers that are state, under all their names: {name, tensor, may be missing}.
local function entries(self)
  local out = {}
  for _, item in ipairs(tensors(self, "parameters", true)) do out[#out + 1] = {item[1], item[2]} end
  for _, item in ipairs(tensors(self, "buffers", true)) do
    local how = rawget(item[3], "_module").buffers[item[4]]
    if how.persistent then out[#out + 1] = {item[1], item[2], how.optional} end
  end
  return out
end

---A plain table from PyTorch's names to tensors that share their data with the module.
---@return table<string, ampl.Tensor>
function Module:state_dict()
  local out = {}
  for _, entry in ipairs(entries(self)) do out[entry[1]] = entry[2]:detach() end
  return listing(out)
end

---Copies the tensors of `dict` into the module.  On an error nothing is changed.
---@param dict table<string, ampl.Tensor>
---@param strict? boolean
---@param options? {strict: boolean} strict = false takes what fits
---@return {missing_keys: string[], unexpected_keys: string[], mismatched_keys: string[]}
Module.load_state_dict = args.declare_method("load_state_dict", {
  {"state_dict", "dict"}, {"strict", "boolean", true},
}, function(self, o)
  return state.load(self.name, entries(self), o.state_dict, o.strict)
end)

---Moves to a device, casts parameters and float buffers.  They become other tensors: make optimisers afterwards.
---@param target string|{dtype: string, device: string}
---@return ampl.nn.Module self
function Module:to(target)
  local where = state.target(self.name, target)
  local moved = {}
  for _, m in ipairs(self:modules()) do
    for _, kind in ipairs({"parameters", "buffers"}) do
      for _, member in ipairs(m:members(kind)) do
        local old = member[2]
        moved[old] = moved[old] or state.moved(old, where):keep()
        rawset(m, member[3], moved[old])
      end
    end
  end
  return self
end

function Module:half() return self:to("f16") end
function Module:float() return self:to("f32") end
function Module:bfloat16() return self:to("bf16") end
function Module:double() return self:to("f64") end
function Module:cpu() return self:to("cpu") end
function Module:cuda() return self:to("cuda") end

-- A copy of a field: modules and tensors are copied (shared ones stay shared), plain tables too.
local function copied(value, done)
  if is_tensor(value) then
    if not done[value] then
      local t = value:detach():clone()
      done[value] = (value.is_leaf and value.requires_grad and t:requires_grad_(true) or t):keep()
    end
    return done[value]
  end
  if type(value) ~= "table" then return value end
  if done[value] then return done[value] end
  local out = {}
  done[value] = out
  for k, v in next, value do out[k] = copied(v, done) end
  return setmetatable(out, getmetatable(value))
end

---A module of its own with copies of all parameters and buffers; hooks stay behind.
---@return ampl.nn.Module
function Module:clone()
  local out = copied(self, {})
  for _, m in ipairs(out:modules()) do
    local own = rawget(m, "_module")
    own.hooks, own.pre_hooks = nil, nil
  end
  return out
end

-- ---------------------------------------------------------------------------------------------------- modes -------

---@param mode? boolean
---@return ampl.nn.Module self
Module.train = args.declare_method("train", {{"mode", "boolean", true}}, function(self, o)
  for _, m in ipairs(self:modules()) do rawset(m, "training", o.mode) end
  return self
end)

---@return ampl.nn.Module self
function Module:eval() return self:train(false) end

---@param on? boolean
---@return ampl.nn.Module self
Module.requires_grad_ = args.declare_method("requires_grad_", {{"requires_grad", "boolean", true}}, function(self, o)
  for _, item in ipairs(tensors(self, "parameters")) do item[2]:requires_grad_(o.requires_grad) end
  return self
end)

---Drops the gradients, or sets them to 0.
---@param options? boolean|{set_to_none: boolean}
Module.zero_grad = args.declare_method("zero_grad", {{"set_to_none", "boolean", true}}, function(self, o)
  local _ <close> = core.scope_open()
  for _, p in ipairs(self:parameters()) do
    if o.set_to_none then
      p.grad = nil
    elseif p.grad then
      p.grad = p.grad:detach():zero_()
    end
  end
end)

---Calls fn(module) for every module, children first.
---@param fn fun(m: ampl.nn.Module)
---@return ampl.nn.Module self
Module.apply = args.declare_method("apply", {{"fn", "function"}}, function(self, o)
  for _, child in ipairs(self:children()) do child:apply(o.fn) end
  o.fn(self)
  return self
end)

-- ---------------------------------------------------------------------------------------------------- calling -----

-- One result as it is, several as a list: what a hook sees of a forward.
local function result(packed)
  if packed.n == 1 then return packed[1] end
  packed.n = nil
  return packed
end

local function call_hooked(self, m, ...)
  local inputs = table.pack(...)
  for _, hook in ipairs({table.unpack(m.pre_hooks)}) do
    local changed = hook.fn(self, {table.unpack(inputs, 1, inputs.n)})
    if changed ~= nil then
      inputs = type(changed) == "table" and table.pack(table.unpack(changed)) or table.pack(changed)
    end
  end
  local outputs = table.pack(self:forward(table.unpack(inputs, 1, inputs.n)))
  for _, hook in ipairs({table.unpack(m.hooks)}) do
    local seen = result({n = outputs.n, table.unpack(outputs, 1, outputs.n)})
    local changed = hook.fn(self, {table.unpack(inputs, 1, inputs.n)}, seen)
    if changed ~= nil then outputs = table.pack(changed) end
  end
  return table.unpack(outputs, 1, outputs.n)
end

function Module:__call(...)
  local m = rawget(self, "_module")
  if m.hooks then return call_hooked(self, m, ...) end
  return self:forward(...)
end

local Hook = {}
function Hook:__tostring() return ("a hook of %s; hook:remove() takes it away"):format(self.of) end

local function add_hook(self, kind, fn)
  local m, hook = rawget(self, "_module"), setmetatable({fn = fn}, Hook)
  hook.of = self.name
  m.hooks, m.pre_hooks = m.hooks or {}, m.pre_hooks or {}
  table.insert(m[kind], hook)
  function hook.remove()
    for i, h in ipairs(m[kind]) do
      if h == hook then
        table.remove(m[kind], i)
        break
      end
    end
    if #m.hooks + #m.pre_hooks == 0 then m.hooks, m.pre_hooks = nil, nil end
  end
  return hook
end

---fn(module, list of inputs, output) after every forward; what it returns, if anything, replaces the output.
---@param fn function
---@return {remove: fun(self)}
Module.register_forward_hook = args.declare_method("register_forward_hook", {{"fn", "function"}}, function(self, o)
  return add_hook(self, "hooks", o.fn)
end)

---fn(module, list of inputs) before every forward; what it returns, if anything, replaces the inputs.
---@param fn function
---@return {remove: fun(self)}
Module.register_forward_pre_hook = args.declare_method("register_forward_pre_hook", {
  {"fn", "function"},
}, function(self, o) return add_hook(self, "pre_hooks", o.fn) end)

-- ---------------------------------------------------------------------------------------------------- showing -----

---What stands in the brackets of tostring.
---@return string
function Module:extra_repr()
  local o, parts = rawget(self, "_options") or {}, {}
  for _, p in ipairs(self.params or {}) do
    local v = o[p[1]]
    if type(v) == "table" then v = "{" .. table.concat(v, ", ") .. "}" end
    if v ~= nil and not is_tensor(v) then parts[#parts + 1] = p[1] .. " = " .. tostring(v) end
  end
  return table.concat(parts, ", ")
end

local shown = {}                                        -- the modules whose text is being made
function Module:__tostring()
  if shown[self] then return self.name .. "(...)" end   -- it holds itself
  local lines = {}
  shown[self] = true
  for name, child in self:named_children() do
    lines[#lines + 1] = ("  (%s): %s"):format(name, tostring(child):gsub("\n", "\n  "))
  end
  shown[self] = nil
  if #lines == 0 then return ("%s(%s)"):format(self.name, self:extra_repr()) end
  return ("%s(\n%s\n)"):format(self.name, table.concat(lines, "\n"))
end

---Whether a value is a module.
---@param v any
---@return boolean
function Module.is(v) return is_module(v) end

return Module
