-- Arguments of functions and constructors written in Lua: leading ones by position, any by name in a trailing table.
--
--   local signature = args.signature("StepLR", {{"step_size", "integer", min = 1}, {"gamma", "number", 0.1}})
--   local o = signature(10, {gamma = 0.5})       --> {step_size = 10, gamma = 0.5}
--
-- A parameter is {name, kind, default} and what else must hold of it:
--   min, above, max, below   the range of a number, or of every number in a list
--   length, filled           how many entries a list has; that it has any
--   choices                  the strings to choose from
-- A kind that ends in "?" may be left out or be false, which stands for "none".  Without "?" and without a default it
-- is required.  What is declared here is checked, completed by defaults, named in messages and shown by help.

local core = require "ampl.core"
local kinds = require "ampl.kinds"
local raise = require "ampl.raise"

-- MOST_LAYERS: what a model may have at most; a number beyond is a mistake that would fill the memory.
local args = {MOST_LAYERS = 4096, shown = kinds.shown, is_plain = kinds.is_plain}

local shown = kinds.shown

local NONE = {}                         -- what an optional parameter has that was given as false: not its default

-- function -> {its parameters, the function that its documentation stands above}, for help
local declared = setmetatable({}, {__mode = "k"})

---Splits a trailing option table from the arguments: a plain table with string keys only.
---@param op string who asks, for messages
---@param n integer how many arguments there are
---@param list table the arguments
---@param empty boolean whether an empty table at the end is an option table
---@return integer n  without the table
---@return table? options
function args.options(op, n, list, empty)
  local last = list[n]
  if n == 0 or type(last) ~= "table" or not kinds.is_plain(last) then return n, nil end
  local named, counted = false, false
  for key in next, last do
    if type(key) == "string" then named = true else counted = true end
  end
  if named and counted then
    raise("EARG", op, "a table holds a list and options at once: write {1, 2}, {name = value} as two tables")
  end
  if named or (not counted and empty) then return n - 1, last end
  return n, nil
end

-- The bounds of a parameter as text: "at least 0 and below 1".
local function range_of(p)
  if p.min and p.max then return ("from %.14g to %.14g"):format(p.min, p.max) end
  local parts = {}
  for _, bound in ipairs({{"min", "at least"}, {"above", "above"}, {"max", "at most"}, {"below", "below"}}) do
    if p[bound[1]] then parts[#parts + 1] = ("%s %.14g"):format(bound[2], p[bound[1]]) end
  end
  return table.concat(parts, " and ")
end

local function in_range(p, v)
  return (not p.min or v >= p.min) and (not p.max or v <= p.max) and (not p.above or v > p.above) and
         (not p.below or v < p.below) and v == v
end

-- Raises unless v, or each entry of it, lies in the range of p.
local function check_range(op, p, v, name)
  if type(v) == "number" then
    if not in_range(p, v) then
      raise("EVALUE", op, ("%s must be %s, not %s"):format(name, range_of(p), shown(v)))
    end
  elseif type(v) == "table" then
    for i, entry in ipairs(v) do check_range(op, p, entry, ("entry %d of %s"):format(i, name)) end
  end
end

local function check_choice(op, p, v, name)
  for _, c in ipairs(p.choices) do
    if c == v then return end
  end
  raise("EVALUE", op, ('%s must be "%s", not %s'):format(name, table.concat(p.choices, '" or "'), shown(v)))
end

-- The value to keep of what is given for p.
local function checked(op, p, value, name)
  if value == false and p.optional and p.kind ~= "boolean" then return NONE end
  local kept, why, code = p.check(value)
  if kept == nil then
    raise(code or "EARG", op, why and ("%s %s"):format(name, why) or
          ("%s must be %s, not %s"):format(name, p.text, shown(value)))
  end
  if p.ranged then check_range(op, p, kept, name) end
  if p.choices then check_choice(op, p, kept, name) end
  if p.length and type(kept) == "table" and #kept ~= p.length then
    raise("EARG", op, ("%s must have %d entries, not %d"):format(name, p.length, #kept))
  end
  if p.filled and type(kept) == "table" and #kept == 0 then raise("EARG", op, name .. " must not be empty") end
  return kept
end

---@class ampl.Parser
---@field params table[] as they were declared
local Parser = {}
Parser.__index = Parser

---Reads parameters: see the top of this file.
---@param params table[]
---@return ampl.Parser
function args.parser(params)
  local self = setmetatable({params = params, list = {}, by_name = {}, names = {}}, Parser)
  for i, p in ipairs(params) do
    local kind, optional = p[2]:match("^([%a_]+)(%??)$")
    local own = {name = p[1], kind = kind, optional = optional == "?", default = p[3], at = i, text = kinds.text(kind),
                 check = kinds.check(kind), takes_list = kinds.takes_list(kind), choices = p.choices, length = p.length,
                 filled = p.filled, min = p.min, above = p.above, max = p.max, below = p.below,
                 ranged = (p.min or p.above or p.max or p.below) ~= nil}
    self.list[i], self.by_name[p[1]], self.names[i] = own, own, p[1]
  end
  return self
end

-- Puts what is named in `options` into `out`, where nothing stands yet.
local function read_options(self, op, options, out, prefix)
  for name, value in next, options do
    local p = self.by_name[name]
    if not p then
      raise("EARG", op, ("%sunknown option %s; known are %s"):format(prefix, shown(name),
                                                                     table.concat(self.names, ", ")))
    end
    if out[name] ~= nil then
      raise("EARG", op, ("%s%s is given twice: as argument %d and as an option"):format(prefix, name, p.at))
    end
    out[name] = checked(op, p, value, prefix .. name)
  end
end

-- Fills in defaults; raises for what is missing.
local function complete(self, op, out, prefix)
  for _, p in ipairs(self.list) do
    local v = out[p.name]
    if v == nil then
      if p.default == nil and not p.optional then
        raise("EARG", op, ("%s%s is missing: %s"):format(prefix, p.name, p.text))
      end
      out[p.name] = p.default
    elseif v == NONE then
      out[p.name] = nil
    end
  end
  return out
end

---The arguments as a table from names to values.
---@param op string who asks, for messages
---@param prefix string put before what a message says
---@return table
function Parser:read(op, prefix, ...)
  local list, n = {...}, select("#", ...)
  while n > 0 and list[n] == nil do n = n - 1 end       -- nil stands for "not given"
  local last, options = self.list[n], nil
  if not (last and last.kind == "dict") then
    n, options = args.options(op, n, list, not (last and last.takes_list))
  end
  if n > #self.list then
    raise("EARG", op, ("%stakes %d arguments (%s), got %d"):format(prefix, #self.list, table.concat(self.names, ", "),
                                                                   n))
  end
  local out = {}
  for i = 1, n do
    if list[i] ~= nil then
      local p = self.list[i]
      out[p.name] = checked(op, p, list[i], ("%s%s (argument %d)"):format(prefix, p.name, i))
    end
  end
  if options then read_options(self, op, options, out, prefix) end
  return complete(self, op, out, prefix)
end

---A table of named values, checked and completed by defaults; `prefix` stands before names in messages.
---@param op string
---@param prefix string
---@param given table
---@return table
function Parser:complete(op, prefix, given)
  local out = {}
  read_options(self, op, given, out, prefix)
  return complete(self, op, out, prefix)
end

-- Whether v is a good value for p, without a text to be made: for what is looked at often.
local function is_good(p, v)
  if p.kind == "number" then return type(v) == "number" and (not p.ranged or in_range(p, v)) end
  return p.kind == "boolean" and type(v) == "boolean"
end

---Raises unless a table that anyone may have written to holds what is declared.
---@param op string
---@param where string what the table is, put behind names in messages: "parameter group 1"
---@param t table
function Parser:verify(op, where, t)
  for _, p in ipairs(self.list) do
    local v = t[p.name]
    if not is_good(p, v) and not (v == nil and p.optional) then checked(op, p, v, p.name .. " of " .. where) end
  end
end

---Whether there is a parameter of this name.
---@param name string
---@return boolean
function Parser:has(name) return self.by_name[name] ~= nil end

---Raises unless `value` is good for the parameter `name`, which messages call `shown_name`.
---@param op string
---@param shown_name string
---@param name string
---@param value any
function Parser:check(op, shown_name, name, value) checked(op, self.by_name[name], value, shown_name) end

---Makes a reader for one signature.
---@param op string
---@param params table list of {name, kind, default}
---@return fun(...): table
function args.signature(op, params)
  local parser = args.parser(params)
  local function read(...) return parser:read(op, "", ...) end
  return read
end

---Makes a reader for a method: it takes the object first, whose name stands in messages.
---@param name string of the method
---@param params table
---@return fun(self: table, ...): table
function args.method(name, params)
  local parser, prefix = args.parser(params), name .. ": "
  return function(self, ...) return parser:read(self.name, prefix, ...) end
end

---A public function: body(o) gets the arguments as a table.
---@param name string
---@param params table
---@param body fun(o: table): any
---@return function
function args.declare(name, params, body)
  local parser = args.parser(params)
  local function f(...) return body(parser:read(name, "", ...)) end
  declared[f] = {params, body}
  return f
end

---A public method: body(self, o) gets the arguments as a table.
---@param name string
---@param params table
---@param body fun(self: table, o: table): any
---@return function
function args.declare_method(name, params, body)
  local read = args.method(name, params)
  local function f(self, ...) return body(self, read(self, ...)) end
  declared[f] = {params, body}
  return f
end

---The parameters of a function that was declared here, and the function that its documentation stands above.
---@param f function
---@return table[]?
---@return function?
function args.params_of(f)
  local d = declared[f]
  if d then return d[1], d[2] end
end

---What a parameter takes as text: "an integer, at least 1".
---@param p table
---@return string
function args.describe(p)
  if p.choices then return '"' .. table.concat(p.choices, '" or "') .. '"' end
  local parts = {kinds.text(p[2]:match("^[%a_]+"))}
  local range = range_of(p)
  if range ~= "" then parts[#parts + 1] = (kinds.takes_list(p[2]:match("^[%a_]+")) and "each " or "") .. range end
  if p.length then parts[#parts + 1] = ("%d in a list"):format(p.length) end
  return table.concat(parts, ", ")
end

---Raises unless x is a tensor: for what a layer is called with.
---@param op string
---@param name string
---@param x any
function args.tensor(op, name, x)
  if not core.is_tensor(x) then raise("EARG", op, ("%s must be a tensor, not %s"):format(name, shown(x))) end
  return x
end

---Raises unless f can be called.
---@param op string
---@param name string
---@param f any
function args.callable(op, name, f)
  if not kinds.check("callable")(f) then raise("EARG", op, ("%s must be a function, not %s"):format(name, shown(f))) end
end

return args
