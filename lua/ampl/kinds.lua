-- The kinds of arguments that ampl.args knows: what a message calls each, and which values are of it.

local core = require "ampl.core"

local kinds = {}

local is_tensor = core.is_tensor

---Whether a table is data and no object: without a metatable, or with one that only shows it.
---@param t table
---@return boolean
function kinds.is_plain(t)
  local mt = getmetatable(t)
  return mt == nil or (type(mt) == "table" and mt.__plain == true)
end

local function is_module(v) return type(v) == "table" and rawget(v, "_module") ~= nil end
local function is_class(v) return type(v) == "table" and rawget(v, "__index") == v and type(v.name) == "string" end

-- What is an object of a class of ours, by its class's name.
local function name_of(v)
  local mt = getmetatable(v)
  return type(mt) == "table" and type(mt.name) == "string" and mt.name or nil
end

---What a message says of a value: numbers and strings as they are written, others by what they are.
---@param v any
---@return string
function kinds.shown(v)
  local kind = type(v)
  if kind == "string" then
    return (("%q"):format(#v > 60 and v:sub(1, 57) .. "..." or v):gsub("\\\n", "\\n"))
  end
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(v) end
  if is_tensor(v) then return "a tensor" end
  if kind == "table" then
    if is_class(v) then return "the class " .. v.name end
    local name = name_of(v)
    if name then return (is_module(v) and "a module (%s)" or "an object (%s)"):format(name) end
  end
  return "a " .. kind
end

local function whole(v) return type(v) == "number" and math.tointeger(v) or nil end

---The length of a list; nil, and what is wrong, when a table is none.
---@param t table
---@return integer?
---@return string?
local function length(t)
  local n = 0
  for k in next, t do
    if not whole(k) then return nil, ("must be a list, but it has the field %s"):format(kinds.shown(k)) end
    n = n + 1
  end
  for i = 1, n do
    if rawget(t, i) == nil then return nil, ("must be a list without holes: entry %d is nil"):format(i) end
  end
  return n
end

-- A list whose entries `entry` accepts, as a list of what that keeps.
local function list_of(v, entry, what)
  if type(v) ~= "table" then return nil end
  local n, why = length(v)
  if not n then return nil, why end
  local out = {}
  for i = 1, n do
    local e = rawget(v, i)
    out[i] = entry(e)
    if out[i] == nil then return nil, ("must hold %s, but entry %d is %s"):format(what, i, kinds.shown(e)) end
  end
  return out
end

-- A check of one value, or of a list of them.
local function one_or_list(check, what)
  return function(v)
    if type(v) ~= "table" then return check(v) end
    return list_of(v, check, what)
  end
end

local function any(v) return v end
local function number(v) return type(v) == "number" and v or nil end

local function rank_of(x) return x.ndim end
local function tensor(v)
  if not is_tensor(v) then return nil end
  if not pcall(rank_of, v) then return nil, "is a tensor that was freed", "EFREED" end
  return v
end

local function of_type(name)
  return function(v) if type(v) == name then return v end end
end

local function module(v) return is_module(v) and v or nil end

-- Tensors that are trained: a list of them, a module, or one.
local function parameters(v)
  if is_tensor(v) then return tensor(v) end
  if type(v) ~= "table" or is_class(v) then return nil end
  if type(v.named_parameters) == "function" then return v end
  local n, why = length(v)
  if not n then return nil, why end
  local out = {}
  for i = 1, n do
    local kept, reason, code = tensor(rawget(v, i))
    if not kept then
      return nil, reason and ("has an entry, %d, that %s"):format(i, reason) or
             ("must hold tensors, but entry %d is %s"):format(i, kinds.shown(rawget(v, i))), code
    end
    out[i] = kept
  end
  return out
end

local function optimizer(v)
  if type(v) ~= "table" or type(v.param_groups) ~= "table" then return nil end
  for i, group in ipairs(v.param_groups) do
    if type(group) ~= "table" then return nil, ("has a param_groups[%d] that is no table"):format(i) end
  end
  return v
end

local function scaler(v) return type(v) == "table" and type(v.step_taken) == "function" and v or nil end

local function callable(v)
  local mt = type(v) == "table" and getmetatable(v)
  return (type(v) == "function" or (type(mt) == "table" and mt.__call)) and v or nil
end

local floats = {f32 = true, f16 = true, bf16 = true, f64 = true}
local function dtype(v)
  if type(v) ~= "string" then return nil end
  if not floats[v] then
    return nil, ('must be "f32", "f16", "bf16" or "f64", not %s'):format(kinds.shown(v)), "EDTYPE"
  end
  return v
end

local function dim(v)
  local n = whole(v)
  if n == 0 then return nil, "is 0; dimensions count from 1, or from the end with -1", "EINDEX" end
  return n
end

local sizes = one_or_list(whole, "integers")

-- kind -> {its text, check, whether a table may be one}; check(v) gives the value to keep or nil, and then, where more
-- can be said than that it is of another kind, what is wrong and the error's code.
local all = {
  any          = {"a value", any, true},
  number       = {"a number", number},
  integer      = {"an integer", whole},
  dim          = {"a dimension, an integer", dim},
  boolean      = {"true or false", of_type "boolean"},
  string       = {"a string", of_type "string"},
  table        = {"a table", of_type "table", true},
  dict         = {"a table", of_type "table", true},     -- with names as keys: never taken for options
  ["function"] = {"a function", of_type "function"},
  field        = {"a name or a position", function(v) return type(v) == "string" and v or whole(v) end},
  norm_type    = {'a number or "inf"', function(v) return v == "inf" and math.huge or number(v) end},
  callable     = {"a function", callable},
  inputs       = {"a tensor or a list", function(v) return is_tensor(v) and tensor(v) or list_of(v, any, "values") end,
                  true},
  scalar       = {"a number or a name", function(v)
    return (type(v) == "number" or type(v) == "string") and v or nil
  end},
  tensor       = {"a tensor", tensor},
  dtype        = {"the name of a dtype", dtype},
  device       = {"the name of a device", of_type "string"},
  module       = {"a module", module},
  optimizer    = {"an optimizer", optimizer},
  scaler       = {"a GradScaler", scaler},
  scheduler    = {"a scheduler", function(v)
    return type(v) == "table" and type(v.step) == "function" and v or nil
  end},
  parameters   = {"a list of tensors, a module or a tensor", parameters, true},
  list         = {"a list", function(v) return list_of(v, any, "values") end, true},
  number_list  = {"a list of numbers", function(v) return list_of(v, number, "numbers") end, true},
  integer_list = {"a list of integers", function(v) return list_of(v, whole, "integers") end, true},
  size         = {"an integer or a list of integers", sizes, true},
  numbers      = {"a number or a list of numbers", one_or_list(number, "numbers"), true},
  functions    = {"a function or a list of functions", one_or_list(of_type "function", "functions"), true},
  activation   = {"a function or the name of one", function(v)
    return (type(v) == "function" or type(v) == "string") and v or nil
  end},
  padding      = {'an integer, a list of integers, "valid" or "same"', function(v)
    return (v == "same" or v == "valid") and v or sizes(v)
  end, true},
}

local function entry(kind) return all[kind] or error("ampl.kinds: there is no kind " .. kind) end

---What a message calls a kind.
function kinds.text(kind) return entry(kind)[1] end
---The function that checks values of a kind.
function kinds.check(kind) return entry(kind)[2] end
---Whether a table may be a value of a kind, so that {} is one and no table of options.
function kinds.takes_list(kind) return entry(kind)[3] == true end

return kinds
