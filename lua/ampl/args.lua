-- Arguments of functions and constructors written in Lua: leading ones by position, any by name in a trailing table.
--
--   local signature = args.signature("StepLR", {{"step_size", "integer"}, {"gamma", "number", 0.1}})
--   local o = signature(10, {gamma = 0.5})       --> {step_size = 10, gamma = 0.5}
--
-- A parameter is {name, kind, default}.  A kind that ends in "?" may be left out or be false, which stands for "none".
-- Without "?" and without a default it is required.

local raise = require "ampl.raise"

local args = {}

local function whole(v)
  return type(v) == "number" and math.tointeger(v) or nil
end

-- kind -> what a message calls it, and a function that returns the value to keep or nil
local kinds = {
  any      = {"a value", function(v) return v end},
  number   = {"a number", function(v) return type(v) == "number" and v or nil end},
  integer  = {"an integer", whole},
  boolean  = {"true or false", function(v) if type(v) == "boolean" then return v end end},
  string   = {"a string", function(v) return type(v) == "string" and v or nil end},
  table    = {"a table", function(v) return type(v) == "table" and v or nil end},
  ["function"] = {"a function", function(v) return type(v) == "function" and v or nil end},
  scalar   = {"a number or a name", function(v)
    return (type(v) == "number" or type(v) == "string") and v or nil
  end},
  tensor   = {"a tensor", function(v) return type(v) == "userdata" and v or nil end},
  size     = {"an integer or a list of integers", function(v)
    if type(v) ~= "table" then return whole(v) end
    local out = {}
    for i = 1, #v do
      out[i] = whole(v[i])
      if not out[i] then return nil end
    end
    return out
  end},
  numbers  = {"a number or a list of numbers", function(v)
    if type(v) == "number" then return v end
    if type(v) ~= "table" then return nil end
    for i = 1, #v do
      if type(v[i]) ~= "number" then return nil end
    end
    return v
  end},
  padding  = {'an integer, a list of integers, "valid" or "same"', function(v)
    if v == "same" or v == "valid" then return v end
    if type(v) == "string" then return nil end
    local out = v
    if type(v) == "table" then
      for i = 1, #v do
        if not whole(v[i]) then return nil end
      end
    else
      out = whole(v)
    end
    return out
  end},
}
local lists = {table = true, size = true, numbers = true, padding = true, any = true}

---What a message says of a value: numbers and strings as they are written, others by type.
---@param v any
---@return string
function args.shown(v)
  local kind = type(v)
  if kind == "string" then return ("%q"):format(v) end
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(v) end
  return "a " .. kind
end

---Splits a trailing option table from the arguments: a plain table with string keys only.
---@param op string who asks, for messages
---@param n integer how many arguments there are
---@param list table the arguments
---@param empty boolean whether an empty table at the end is an option table
---@return integer n  without the table
---@return table? options
function args.options(op, n, list, empty)
  local last = list[n]
  if n == 0 or type(last) ~= "table" or getmetatable(last) then return n, nil end
  local named, counted = false, #last > 0
  for key in pairs(last) do
    if type(key) == "string" then named = true end
  end
  if named and counted then
    raise("EARG", op, "a table holds a list and options at once: write {1, 2}, {name = value} as two tables")
  end
  if named or (not counted and empty) then return n - 1, last end
  return n, nil
end

---Makes a parser for one signature.
---@param op string
---@param params table list of {name, kind, default}
---@return fun(...): table
function args.signature(op, params)
  local by_name, names = {}, {}
  for i, p in ipairs(params) do
    local kind, optional = p[2]:match("^(%a+)(%??)$")
    by_name[p[1]] = {name = p[1], kind = kind, optional = optional == "?", default = p[3], text = kinds[kind][1],
                     check = kinds[kind][2], at = i, choices = p.choices}
    names[i] = p[1]
  end

  local function checked(p, value, where)
    if value == false and p.optional and p.kind ~= "boolean" then return nil end
    local kept = p.check(value)
    if kept == nil then
      raise("EARG", op, ("%s%s must be %s, not %s"):format(p.name, where, p.text, args.shown(value)))
    end
    if p.choices then
      for _, c in ipairs(p.choices) do
        if c == kept then return kept end
      end
      raise("EARG", op, ('%s must be one of "%s", not %s'):format(p.name, table.concat(p.choices, '", "'),
                                                                 args.shown(value)))
    end
    return kept
  end

  return function(...)
    local list = {...}
    local n = select("#", ...)
    local next_param = params[n] and by_name[params[n][1]]
    local count, options = args.options(op, n, list, not (next_param and lists[next_param.kind]))
    if count > #params then
      raise("EARG", op, ("takes %d arguments (%s), got %d"):format(#params, table.concat(names, ", "), count))
    end
    local out = {}
    for i = 1, count do
      local p = by_name[names[i]]
      if list[i] ~= nil then out[p.name] = checked(p, list[i], " (argument " .. i .. ")") end
    end
    local given = {}
    for name, value in pairs(options or {}) do
      local p = by_name[name]
      if not p then
        raise("EARG", op, ("unknown option %s; known are %s"):format(args.shown(name), table.concat(names, ", ")))
      end
      if p.at <= count and list[p.at] ~= nil then
        raise("EARG", op, ("%s is given twice: as argument %d and as an option"):format(name, p.at))
      end
      out[name] = checked(p, value, "")
      given[name] = true
    end
    for i, name in ipairs(names) do
      local p = by_name[name]
      local silent = (i > count or list[i] == nil) and not given[name]
      if silent then
        if p.default ~= nil then
          out[name] = p.default
        elseif not p.optional then
          raise("EARG", op, ("%s is missing: %s"):format(name, p.text))
        end
      end
    end
    return out
  end
end

return args
