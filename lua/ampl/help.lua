-- help(x): what an op, a layer, another class, a function or a method does, by its name or as the thing itself.  The
-- text is what stands in the op's record, or in the comments and parameters of the source.

local core = require "ampl.core"
local args = require "ampl.args"

local help = {}

local WIDTH = 110                       -- of a line of text

local function value_text(v)
  if type(v) == "string" then return ("%q"):format(v) end
  if math.type(v) == "float" then return ("%.10g"):format(v) end
  if type(v) == "table" then
    local parts = {}
    for i, e in ipairs(v) do parts[i] = value_text(e) end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  return tostring(v)
end

local function parameter_text(name, default, required)
  if default ~= nil then return name .. " = " .. value_text(default) end
  return required and name or name .. "?"
end

-- ------------------------------------------------------------------------------------------------ ops -------------

-- Lines of text, cut where they are too long.
local function add_all(out, lines)
  for _, line in ipairs(lines) do
    while #line > WIDTH do
      local at = line:sub(1, WIDTH):match("^.*() ") or WIDTH
      out[#out + 1] = "  " .. line:sub(1, at - 1)
      line = line:sub(at + 1)
    end
    out[#out + 1] = line == "" and "" or "  " .. line
  end
end

---An op's name and arguments in one line.
---@param op table a record of ampl.ops
---@return string
function help.signature(op)
  local parts = {}
  for i, a in ipairs(op.args) do parts[i] = parameter_text(a.name, a.default, a.required) end
  return op.name .. "(" .. table.concat(parts, ", ") .. ")"
end

local function of_op(op)
  local out = {help.signature(op)}
  add_all(out, {op.doc})
  for _, a in ipairs(op.args) do
    local kind = a.choices and '"' .. a.choices:gsub("|", '" or "') .. '"' or a.kind
    out[#out + 1] = ("  %-16s %s%s"):format(a.name, kind, a.doc ~= "" and ": " .. a.doc or "")
  end
  if op.category ~= "KEEP" then out[#out + 1] = "  autocast: " .. op.why end
  if not op.differentiable then out[#out + 1] = "  has no gradient" end
  if op.inplace then out[#out + 1] = ("  in place: %s_"):format(op.name) end
  return table.concat(out, "\n")
end

-- ------------------------------------------------------------------------------------------------ sources ---------

local function lines_of(module)
  local text, lines = core.source(module), {}
  for line in (text or ""):gmatch("([^\n]*)\n?") do lines[#lines + 1] = line end
  return lines
end

-- What stands at the top of a source, without "Name: ".
local function head_of(module)
  local out = {}
  for _, line in ipairs(lines_of(module)) do
    local text = line:match("^%-%-%s?(.*)")
    if not text or line:sub(1, 3) == "---" then break end
    out[#out + 1] = text
  end
  if out[1] then out[1] = out[1]:gsub("^[%w_., ]+: (.)", string.upper) end
  return out
end

-- The comment that ends above line `at`: its text, the parameters that it describes, and its results.
local function comment_at(lines, at)
  local first, text, params, results = at, {}, {}, {}
  while first > 0 and lines[first]:find("^%-%-%-") do first = first - 1 end
  for i = first + 1, at do
    local line = lines[i]:match("^%-%-%-%s?(.*)")
    local param, rest = line:match("^@param ([%w_.]+%??)%s*(.*)")
    local result = line:match("^@return (.*)")
    if param then
      params[#params + 1] = ("  %-16s %s"):format(param:gsub("%?$", ""), rest)
    elseif result then
      results[#results + 1] = "  returns " .. result
    elseif line:sub(1, 1) ~= "@" then
      text[#text + 1] = line
    end
  end
  return text, params, results
end

-- The comment above the function f, which is called `name` in its module.
local function comment_of(f, name)
  local info = debug and debug.getinfo(f, "S")
  local path = info and info.source:match("^=%[ampl%]/(.*)%.lua$")
  if not path then return {}, {}, {} end
  local module = "ampl." .. path:gsub("/", ".")
  local lines = lines_of(core.source(module) and module or (module:gsub("%.init$", "")))
  local at = info.linedefined - 1
  local function between(line) return line:match("%S") and not line:find("^%-%-%-") end
  while at > 0 and between(lines[at]) and info.linedefined - at < 8 do at = at - 1 end
  local text, params, results = comment_at(lines, math.max(at, 0))
  for i = 2, #text == 0 and #lines or 0 do              -- made by another function: where its name stands
    local line = lines[i]
    local names_it = line:find("[.:]" .. name .. " = ") or line:find('"' .. name .. '"', 1, true)
    if names_it and lines[i - 1]:find("^%-%-%-") then return comment_at(lines, i - 1) end
  end
  return text, params, results
end

-- ------------------------------------------------------------------------------------------------ classes --------

local function is_class(v) return type(v) == "table" and rawget(v, "__index") == v end

-- The default of a layer's option: that of the op where the layer leaves it to it.
local function default_of(p, op)
  if p[3] ~= nil or not op then return p[3] end
  for _, a in ipairs(op.args) do
    if a.name == p[1] then return a.default end
  end
end

local function signature(path, params, op)
  local parts = {}
  for i, p in ipairs(params) do
    parts[i] = parameter_text(p[1], default_of(p, op), not p[2]:find("?", 1, true))
  end
  return ("%s(%s)"):format(path, table.concat(parts, ", "))
end

-- The names of a function's parameters.
local function plain_signature(path, f)
  local info, parts = debug and debug.getinfo(f, "u"), {}
  for i = 1, info and info.nparams or 0 do
    local name = debug.getlocal(f, i)
    if name ~= "self" and name ~= "_" then parts[#parts + 1] = name end
  end
  if info and info.isvararg then parts[#parts + 1] = "..." end
  return ("%s(%s)"):format(path, table.concat(parts, ", "))
end

local function add_params(out, params, op)
  for _, p in ipairs(params) do
    local of_op_record = ""
    for _, a in ipairs(op and op.args or {}) do
      if a.name == p[1] and a.doc ~= "" then of_op_record = ": " .. a.doc end
    end
    out[#out + 1] = ("  %-16s %s%s"):format(p[1], args.describe(p), of_op_record)
  end
end

-- The comment of a function; what it says of parameters only where these are not declared.
local function add_comment(out, f, name, params)
  local text, described, results = comment_of(f, name)
  add_all(out, text)
  if params then
    add_params(out, params)
  else
    table.move(described, 1, #described, #out + 1, out)
  end
  table.move(results, 1, #results, #out + 1, out)
end

local function of_class(path, class, module)
  local op = type(class.op) == "string" and core.ops(class.op)
  local params = class.params
  local out = {params and signature(path, params, op or nil) or plain_signature(path, class.init)}
  if op then
    add_all(out, {op.doc})
  else
    add_all(out, head_of(module))
    if not params then add_comment(out, class.init, "init") end
  end
  if params then add_params(out, params, op or nil) end
  return table.concat(out, "\n")
end

local function of_function(path, f)
  local params, body = args.params_of(f)
  local out = {params and signature(path, params) or plain_signature(path, f)}
  local manual = require("ampl.manual").functions[path:match("[%w_]+$")]
  if path:match("^ampl%.[%w_]+$") and manual then
    return ("%s(%s)\n  %s"):format(path, manual[1], manual[2])
  end
  add_comment(out, body or f, path:match("[%w_]+$"), params)
  return table.concat(out, "\n")
end

-- A table that can be called, as data.csv may be, or that holds functions.
local function of_table(path, t, module)
  local params = rawget(t, "params")
  local out, names = {params and signature(path, params) or path}, {}
  add_all(out, head_of(module))
  if params then
    add_params(out, params)
    return table.concat(out, "\n")
  end
  for name in pairs(t) do
    if type(name) == "string" and name:match("^%a") then names[#names + 1] = name end
  end
  table.sort(names)
  if #names > 0 and #names < 200 then out[#out + 1] = "  " .. table.concat(names, " ") end
  return table.concat(out, "\n")
end

-- ------------------------------------------------------------------------------------------------ finding ---------

-- The tables that public names stand in, in the order that they are looked through.
local PLACES = {"nn", "optim", "optim.lr_scheduler", "amp", "data", "models", "nn.init", "nn.utils", "safetensors"}

local function place(path)
  local t = require "ampl"
  for name in path:gmatch("[%w_]+") do t = t[name] end
  return t
end

-- What has this name, its full name, and the module that it comes from.
local function find(name)
  local ampl = require "ampl"
  local own = name:gsub("^ampl%.", "")
  for _, path in ipairs(PLACES) do
    if path == own or path:match("[%w_]+$") == own then return place(path), "ampl." .. path, "ampl." .. path end
    local value = rawget(place(path), own)
    if value == nil then value = place(path)[own] end
    if value ~= nil then return value, ("ampl.%s.%s"):format(path, own), ("ampl.%s.%s"):format(path, own) end
  end
  if ampl[own] ~= nil then return ampl[own], "ampl." .. own, "ampl." .. own end
  local functional = core.functional[own]
  if functional then return functional, "ampl.nn.functional." .. own end
  local outer, last = own:match("^(.*)%.([%w_]+)$")     -- "nn.Linear", "GradScaler.step"
  if not outer then return nil end
  local holder, path, module = find(outer)
  if outer == "F" or outer == "nn.functional" then return find(last) end
  if outer == "Tensor" then return nil end
  if type(holder) == "table" and holder[last] ~= nil then
    return holder[last], path .. (is_class(holder) and ":" or ".") .. last, module .. "." .. last
  end
end

-- The full name of a value.
local function name_of(value)
  for _, path in ipairs(PLACES) do
    for name, v in pairs(place(path)) do
      if rawequal(v, value) then return path .. "." .. name end
    end
  end
  for name, v in pairs(require "ampl") do
    if rawequal(v, value) then return name end
  end
end

local function of_value(value, path, module)
  if is_class(value) then return of_class(path, value, module) end
  if type(value) == "function" then return of_function(path, value) end
  if type(value) == "table" then return of_table(path, value, module) end
  return ("%s: %s"):format(path, tostring(value))
end

local function of_method(name)
  for _, m in ipairs(require("ampl.manual").methods) do
    if m[1] == name then return ("x:%s(%s)%s\n  %s"):format(m[1], m[2], m[3] and " -> " .. m[3] or "", m[4]) end
  end
end

local function of_name(name)
  local op = core.ops(name:match("[%w_]+$") or "")
  if op and (name == op.name or name:match("^[%w_.]*F%.") or name:match("functional%.") or name:match("^Tensor%.")) then
    return of_op(op)
  end
  local base = name:match("([%w_]+)_$")                 -- an in-place form
  if base and core.ops(base) and core.ops(base).inplace then return of_op(core.ops(base)) end
  local value, path, module = find(name)
  if value ~= nil then return of_value(value, path, module) end
  return of_method(name:match("[%w_]+$"))
end

---The text about an op, a class, a function or a method: by its name ("softmax", "Linear", "nn.Linear",
---"GradScaler.step") or as the thing itself.
---@param x any
---@return string
function help.help(x)
  if x == nil then
    return "help(x) tells of an op, a class or a function, by its name or as the thing itself: help(\"softmax\"), " ..
           "help(ampl.nn.Linear).\n  ampl.ops() lists the ops; ampl.nn, ampl.optim, ampl.amp, ampl.data and " ..
           "ampl.models hold the rest."
  end
  if core.is_tensor(x) then return "a tensor: " .. tostring(x) end
  if type(x) == "function" then
    for _, op in ipairs(core.ops()) do
      if core.functional[op.name] == x then return of_op(op) end
    end
  end
  local class = type(x) == "table" and not is_class(x) and getmetatable(x)
  if is_class(class) then x = class end                 -- an object: its class
  local name = type(x) == "string" and x or (type(x) == "function" or type(x) == "table") and name_of(x)
  local text = name and of_name(name)
  if text then return text end
  if type(x) == "table" and is_class(x) then return of_class(x.name, x, "") end
  if type(x) == "function" then return of_function("function", x) end
  return ("there is no help on %s; ampl.ops() lists the ops, ampl.nn, ampl.optim, ampl.amp, ampl.data and " ..
          "ampl.models hold classes and functions"):format(args.shown(x))
end

return help
