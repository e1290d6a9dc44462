-- Random calls of every op: samples of spec/samples with an argument or two exchanged, operands in other layouts and
-- dtypes, and calls with random arguments of every kind; in regions, with gradients, in place; views against copies.
--   ampl spec/fuzz/ops.lua [--seconds N] [--calls N] [--seed N]

package.path = (arg[0]:match("^(.*)/spec/fuzz/") or ".") .. "/?.lua;" .. package.path
local ampl = require "ampl"
local harness = require "spec.fuzz.harness"
local samples = require "spec.support.samples"
local source = require "spec.fuzz.source"
local tensors = require "spec.support.tensors"

local all, names, internal = samples.load(), {}, {}
for _, record in ipairs(ampl.ops()) do names[#names + 1] = record.name end
for name in pairs(require "ampl.core".internal) do internal[#internal + 1] = name end
table.sort(internal)

-- ------------------------------------------------------------------------------------------------ arguments

-- `make` of a sample, that remembers what text makes the tensor.
local function recorder(texts)
  return function(shape, o)
    o = o or {}
    if type(shape) ~= "table" then shape = {shape} end
    local s = source.of(shape)
    local text
    if o.bool then text = ("ampl.rand(%s):gt(0.5)"):format(s)
    elseif o.labels then text = ("ampl.randint(1, %d, %s)"):format(o.labels + 1, s)
    elseif o.int then text = ("ampl.randint(%d, %d, %s)"):format(o.lo or -5, (o.hi or 5) + 1, s)
    else
      local lo, hi = o.lo or o.positive and 0.25 or -2, o.hi or 2
      text = ("ampl.rand(%s):mul(%.17g):add(%.17g)"):format(s, hi - lo, lo)
    end
    if o.dtype then text = text .. (':to("%s")'):format(o.dtype) end
    local t = load("return " .. text)()
    texts[#texts + 1] = {t, text, float = not (o.bool or o.labels or o.int), grad = o.grad ~= false}
    return t
  end
end

-- A tree of texts: {text = , tensor = } or a table of those, for a value of a sample.
local function tree(v, texts)
  if type(v) == "userdata" then
    for _, made in ipairs(texts) do
      if made[1] == v then return {text = made[2], tensor = true, float = made.float} end
    end
    return {text = source.of(v), tensor = true}
  elseif type(v) == "table" then
    local t, keys = {table = true}, {}
    for k in pairs(v) do keys[#keys + 1] = k end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for _, k in ipairs(keys) do t[#t + 1] = {key = k, value = tree(v[k], texts)} end
    return t
  end
  return {text = source.of(v)}
end

local function leaves(t, out)
  if not t.table then out[#out + 1] = t end
  for _, entry in ipairs(t) do leaves(entry.value, out) end
  if t.table and #t == 0 then out[#out + 1] = t end
end

-- One argument becomes another one.
local function exchange(r, leaf)
  leaf.table = nil
  for i = 1, #leaf do leaf[i] = nil end
  local k = r:below(10)
  if leaf.tensor and k < 6 then leaf.text = leaf.text .. source.layout(r)
  elseif leaf.tensor and k < 8 then leaf.text = source.tensor(r)
  elseif leaf.text and tonumber(leaf.text) and k < 6 then leaf.text = source.integer(r)
  elseif k < 7 then leaf.text = source.float(r)
  else leaf.text, leaf.tensor = source.wrong(r), false
  end
end

local function write(t)
  if not t.table then return t.text end
  local parts = {}
  for _, entry in ipairs(t) do parts[#parts + 1] = ("[%s] = %s"):format(source.of(entry.key), write(entry.value)) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- A value for an argument of this kind, mostly a right one.
local KINDS = {
  ["a tensor or a number"] = function(r) return r:chance(5) and source.float(r) or source.tensor(r) end,
  ["a tensor"] = source.tensor,
  ["a tensor or nothing"] = source.tensor,
  ["a list of tensors"] = function(r) return source.list(r, 4, source.tensor) end,
  ["a dimension"] = source.integer, ["a position"] = source.integer, ["an integer"] = source.integer,
  ["a dimension or a list of them"] = function(r) return source.list(r, 3, source.integer) end,
  ["an integer or a list"] = function(r) return source.list(r, 4, source.integer) end,
  ["a number"] = source.float,
  ["a boolean"] = function(r) return r:pick {"true", "false"} end,
  ["a dtype"] = function(r) return ("%q"):format(source.dtype(r)) end,
  ["a device"] = function() return '"cpu"' end,
}

local function of_kind(r, a)
  if r:chance(8) then return source.wrong(r) end
  if a.choices and r:below(8) > 0 then
    local list = {}
    for c in a.choices:gmatch("[^|]+") do list[#list + 1] = c end
    return ("%q"):format(r:pick(list))
  end
  local make = KINDS[a.kind]
  return make and make(r) or source.integer(r)
end

-- ------------------------------------------------------------------------------------------------ lines

-- How the op is written: function, method, in place.
local function callee(r, record, args)
  local method = args[1] and args[1].tensor and not record.functional_only
  if method and record.inplace and r:chance(5) then return "x1:" .. record.name .. "_" end
  if method and (record.method_only or r:chance(4)) then return "x1:" .. record.name end
  if record.method_only then return nil end
  return (record.functional_only and "ampl.nn.functional." or "ampl.") .. record.name
end

local REGIONS = {
  'ampl.amp.autocast({dtype = "f16"}, function() return CALL end)', "ampl.no_grad(function() return CALL end)",
  'ampl.amp.autocast({dtype = "bf16"}, function() return CALL end)', "ampl.scope(function() return CALL end)",
  "ampl.inference_mode(function() return CALL end)",
}
local LEAF = [[ if type(NAME) == "userdata" and NAME.dtype:find("f") then NAME = NAME:detach():requires_grad_(true)]]
local EACH = " local r, xs = table.pack(CALL), {LEAVES} for i = 1, r.n do " ..
  [[if type(r[i]) == "userdata" and r[i].requires_grad then ]]
local BACKWARD = EACH .. "r[i]:sum():backward() end end return table.unpack(r, 1, r.n)"
local TWICE = EACH .. [[local g = table.pack(ampl.grad(r[i]:sum(), xs, {create_graph = true, ]] ..
  "allow_unused = true})) " ..
  [[for k = 1, #xs do if g[k] and g[k].requires_grad then ]] ..
  "g[k]:sum():backward({retain_graph = true}) end end end end " ..
  "return table.unpack(r, 1, r.n)"

local function fill(text, key, value) return (text:gsub(key, (value:gsub("%%", "%%%%")))) end

-- The line: operands that are tensors are locals, and float ones may require gradients.
local function compose(args, o)
  local locals, out, xs = {}, {}, {}
  for i = 1, args.n do
    local a = args[i]
    if a.tensor then
      local name = ("x%d"):format(i)
      locals[#locals + 1] = ("local %s = %s%s"):format(name, a.text, o.contiguous and ":contiguous()" or "")
      if o.grad then
        locals[#locals + 1] = fill(LEAF .. (o.nonleaf and " NAME = NAME:mul(1) end" or " end"), "NAME", name)
        xs[#xs + 1] = name
      end
      out[i] = name
    else
      out[i] = write(a)
    end
  end
  local method = o.callee:find("^x1:") ~= nil
  local call = ("%s(%s)"):format(o.callee, table.concat(out, ", ", method and 2 or 1))
  if o.region then call = fill(o.region, "CALL", call) end
  local tail = " return " .. call
  if o.grad then
    tail = fill(fill(#xs > 0 and o.twice and TWICE or BACKWARD, "CALL", call), "LEAVES", table.concat(xs, ", "))
  end
  return ("ampl.manual_seed(%d) "):format(o.seed) .. table.concat(locals, " ") .. tail
end

local function from_sample(r, record)
  local list = all[record.name]
  if not list then return nil end
  local sample, texts = r:pick(list), {}
  ampl.manual_seed(1)
  local args = table.pack(sample.args(recorder(texts)))
  local trees = {n = args.n}
  for i = 1, args.n do trees[i] = tree(args[i], texts) end
  return trees
end

local function from_kinds(r, record)
  local n = r:below(#record.args + 2)
  local args = {n = n}
  for i = 1, n do
    local a = record.args[i]
    if not a then args[i] = {text = source.wrong(r)}
    else args[i] = {text = of_kind(r, a), tensor = a.kind:find("^a tensor") ~= nil} end
    if args[i].tensor and not source.is_tensor(args[i].text) then args[i].tensor = false end
  end
  return args
end

local function from_internal(r)
  local name = r:pick(internal)
  local args = {}
  for i = 1, r:below(7) do args[i] = r:chance(3) and source.wrong(r) or source.tensor(r) end
  return ("ampl.manual_seed(1) return require('ampl.core').internal.%s(%s)"):format(name, table.concat(args, ", "))
end

-- Values drawn from other places in memory may not be the same: what is undefined, and what is cut by layout.
local UNDEFINED = {empty = true, empty_like = true}

-- Expectation: views give what their copies give.
local function same_as_copies(line)
  return function(...)
    local got = table.pack(...)
    local chunk = load(line, "=copies", "t")
    local want = table.pack(pcall(chunk))
    if not want[1] then return "copies raise: " .. tostring(want[2]) end
    for i = 1, got.n do
      local g, w = got[i], want[i + 1]
      if type(g) == "userdata" and type(w) == "userdata" and g:numel() < 300000 then
        local tol = ({f32 = 1e-4, f64 = 1e-9, f16 = 2e-2, bf16 = 1e-1})[g.dtype] or 0
        local why = tensors.compare(g, w, w.dtype, tol)
        if why then return ("views and copies differ in output %d: %s; copies: %s"):format(i, why, line) end
      end
    end
  end
end

local line_of
function line_of(r)
  if r:chance(12) then return from_internal(r) end
  local record = ampl.ops(r:pick(names))
  local args
  if r:below(5) > 0 then
    args = from_sample(r, record)
    if args then
      local list = {}
      for i = 1, args.n do leaves(args[i], list) end
      for _ = 1, r:weighted({0, 1, 2, 3}, {[0] = 4, 4, 2, 1}) do
        if #list > 0 then exchange(r, r:pick(list)) end
      end
    end
  end
  args = args or from_kinds(r, record)
  local o = {seed = r:below(1000), grad = r:chance(3), nonleaf = r:chance(3), twice = r:chance(4)}
  o.callee = callee(r, record, args)
  if not o.callee then return line_of(r) end
  if r:chance(5) then o.region = r:pick(REGIONS) end
  local line = compose(args, o)
  if not o.grad and not UNDEFINED[record.name] and not o.callee:find("_$") and r:chance(2) then
    o.contiguous = true
    local copies = compose(args, o)
    if copies ~= line then return line, same_as_copies(copies) end
  end
  return line
end

harness.main(line_of, "ops")
