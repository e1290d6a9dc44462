-- Every public class and function of nn, optim, lr_scheduler, amp, models and ampl itself, called with arguments of
-- every kind, right and wrong; and what comes of it, used: layers on inputs, optimisers' steps, states, methods.
--   ampl spec/fuzz/classes.lua [--seconds N] [--calls N] [--seed N]

package.path = (arg[0]:match("^(.*)/spec/fuzz/") or ".") .. "/?.lua;" .. package.path
local ampl = require "ampl"
local core = require "ampl.core"
local harness = require "spec.fuzz.harness"
local nn = ampl.nn

local r                                 -- the random stream of the run

-- ------------------------------------------------------------------------------------------------ values ----------

-- What every line may name.
local PRELUDE = [[
local ampl = require "ampl"
local nn, optim, amp, models = ampl.nn, ampl.optim, ampl.amp, ampl.models
local lr_scheduler, init, utils = optim.lr_scheduler, nn.init, nn.utils
function T(...) return ampl.rand(...) end
function I(n, ...) return ampl.randint(1, n + 1, {...}, {dtype = "i64"}) end
function D(x, ...) return T(...):to(x) end
function freed(...) local x = T(...); x:free(); return x end
function P(...) local p = T(...):requires_grad_(true); p.grad = T(...); return p end
function opt(c) return optim[c or "SGD"]({P(2, 3), P(3)}, {lr = 0.1}) end
function sched(c) return lr_scheduler.StepLR(opt(c), {step_size = 2}) end
]]

local function pick(list) return r:pick(list) end
local function maybe(p) return r:below(1000) < 1000 * p end

local numbers = {
  "0", "1", "2", "3", "4", "7", "-1", "-2", "0.5", "1.5", "-0.5", "0.9", "2.0", "1e-3", "1e300", "2^31", "2^53",
  "2^62", "math.maxinteger", "math.mininteger", "0/0", "math.huge", "-math.huge", "100000",
}
local strings = {
  '""', '"x"', '"mean"', '"none"', '"sum"', '"f16"', '"f32"', '"bf16"', '"i64"', '"cpu"', '"cuda"', '"relu"', '"tanh"',
  '"inf"', '"same"', '"O1"', '"O2"', '"dynamic"', '"linear"', '"1"', '"a\\0b\\255"', '"weight"', '"step"', '"lr"',
}
local tables = {
  "{}", "{1}", "{1, 2}", "{2, 2}", "{2, 3, 4}", "{1, nil, 3}", "{[2] = 1}", "{0}", "{-1}", "{0.5, 0.5}", "{0/0}",
  "{a = 1}", "{lr = 0.1}", "{bias = false}", "{1, a = 2}", "{{1}, {2}}", '{"x"}', "{2^62, 2^62}", "{T(2), T(3)}",
  "{P(2)}", "{P(2), P(2, 3)}", "{T(2), nil, T(2)}", "{{params = {P(2)}}}",
  "{{params = P(2), lr = 1}, {params = {P(1)}}}",
  "{params = {P(2)}}", "{weight = T(2, 2)}", "{nn.Linear(2, 3), nn.ReLU()}", "{param_groups = {}}",
  "{1, 2, 3, 4, 5, 6, 7, 8, 9}", "{sched()}", "{dtype = \"f16\"}", "{device = 1}", "{state = {}, param_groups = {}}",
  "T(2, 3).shape", "{print}",
  "setmetatable({}, {__index = function(_, k) return k end})", "{enabled = false}", "{opt_level = \"O2\"}",
}
local objects = {
  "T(2, 3)", "T(3)", "T()", "T(2, 3, 4)", "T(2, 4, 6, 6)", "T(0, 3)", "D('f16', 2, 3)", "D('f64', 3)", "I(3, 2, 3)",
  "I(4, 4)", "T(2, 3):gt(0.5)", "freed(2, 3)", "P(2, 3)", "P(3)", "nn.Linear(3, 3)", "nn.Linear", "nn.ReLU()",
  "nn.Sequential(nn.Linear(3, 3))", "opt()", "opt('AdamW')", "sched()", "amp.GradScaler()",
  "optim.SGD", "function() end", "function(x) return x end",
  "function() return 1 end", "function() return T(1):sum() end", "function() error('mine') end",
  "coroutine.create(print)",
  "amp.Accumulator{optimizer = opt()}", "nn.TransformerEncoderLayer(4, 2)", "ampl",
}
local catalogue = {numbers, numbers, strings, tables, tables, objects, {"nil", "true", "false"}}

local function anything() return pick(pick(catalogue)) end

local small = {"0", "1", "1", "2", "2", "3", "4", "4", "6"}
local fractions = {"0", "0.1", "0.25", "0.5", "0.9", "1", "1.0", "2"}

-- A value that a parameter of a kind may well have.
local kinds = {
  integer = function() return pick(small) end,
  dim = function() return pick {"1", "2", "-1", "3"} end,
  number = function() return pick(fractions) end,
  scalar = function() return pick {"2", '"inf"', '"dynamic"', "1.5"} end,
  norm_type = function() return pick {"2", '"inf"', "1"} end,
  boolean = function() return pick {"true", "false"} end,
  size = function() return pick {"1", "2", "3", "{2, 2}", "{2}", "{3, 3}", "{2, 2, 2}", "{3}"} end,
  padding = function() return pick {"0", "1", "{1, 1}", '"same"', '"valid"'} end,
  numbers = function() return pick {"0.1", "0.5", "1", "{0.1, 0.2}"} end,
  number_list = function() return pick {"{0.9, 0.99}", "{0, 0}", "{0.5, 0.9}"} end,
  integer_list = function() return pick {"{1, 2}", "{2, 4}", "{3}", "{4, 8, 2}", "{0}"} end,
  tensor = function() return pick(objects) end,
  dtype = function() return pick {'"f32"', '"f64"', '"bf16"'} end,
  device = function() return '"cpu"' end,
  module = function() return pick {"nn.Linear(3, 3)", "nn.TransformerEncoderLayer(4, 2)", "nn.ReLU()"} end,
  optimizer = function() return pick {"opt()", "opt('AdamW')", "opt('RMSprop')"} end,
  scaler = function() return "amp.GradScaler()" end,
  parameters = function() return pick {"nn.Linear(2, 3)", "{P(2), P(3)}", "P(2, 3)"} end,
  list = function() return pick {"{sched()}", "{}", "{1, 2}"} end,
  activation = function() return pick {'"relu"', '"gelu"', "function(x) return x end"} end,
  functions = function() return pick {"function(n) return 0.9 ^ n end", "function() end"} end,
  ["function"] = function() return pick {"function() end", "function(x) return x end"} end,
  string = function() return pick(strings) end,
}
local function plausible(p)
  if p.choices and maybe(0.9) then return ("%q"):format(pick(p.choices)) end
  local make = kinds[p[2]:match("^[%a_]+")]
  return make and make() or anything()
end

-- The text of an argument list for the declared parameters: by position, then by name; `wrong` of the values are wrong.
local function arguments(params, wrong)
  if not params then
    local list = {}
    for i = 1, r:below(5) do list[i] = anything() end
    return table.concat(list, ", ")
  end
  local list, named = {}, {}
  local n = #params
  local positional = r:below(math.min(n, 5) + 1)
  for i, p in ipairs(params) do
    local required = not p[2]:find("?", 1, true) and p[3] == nil
    local value = maybe(wrong) and anything() or plausible(p)
    if i <= positional then
      list[#list + 1] = value
    elseif (required and maybe(0.97)) or maybe(0.25) then
      named[#named + 1] = ("%s = %s"):format(p[1], value)
    end
  end
  if maybe(wrong) then list[#list + 1] = anything() end
  if maybe(wrong / 2) then named[#named + 1] = "no_such_option = " .. anything() end
  if #named > 0 then list[#list + 1] = "{" .. table.concat(named, ", ") .. "}" end
  if maybe(0.05) then list[#list + 1] = "nil" end
  return table.concat(list, ", ")
end

-- ------------------------------------------------------------------------------------------------ targets ---------

local args = require "ampl.args"

local function is_class(v) return type(v) == "table" and rawget(v, "__index") == v end
local function is_public(name) return type(name) == "string" and name:match("^%a[%w_]*$") end

-- All that stands in the tables of the module: {path, value, params}.
local targets = {}
local function add(path, t, skip)
  local names = {}
  for name, value in pairs(t) do
    local callable = type(value) == "function" or is_class(value) or
                     (type(value) == "table" and getmetatable(value) and getmetatable(value).__call)
    if is_public(name) and callable and not (skip and skip(name)) then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = t[name]
    local params = type(value) == "table" and value.params or args.params_of(value)
    targets[#targets + 1] = {path .. "." .. name, value, params}
  end
end
add("nn", nn)
add("init", nn.init)
add("utils", nn.utils)
add("optim", ampl.optim)
add("lr_scheduler", ampl.optim.lr_scheduler)
add("amp", ampl.amp)
add("models", ampl.models)
-- ampl's own functions; ops have a fuzzer of their own.  What sets a limit of the process stays as it is here.
local settings = {memory_limit = true, set_num_threads = true, on_warning = true}
add("ampl", ampl, function(name) return core.functional[name] or core.ops(name) or settings[name] end)

-- Methods that classes give to those derived from them only.
local protected = {
  init = true, options = true, define = true, extend = true, read = true, members = true, configure = true, cell = true,
  residual = true, feed_forward = true, setup = true, prepare = true, get_lr = true, advance = true, restart = true,
  held = true, per_group = true, begin = true, number_of = true, check_groups = true, check_state = true, check = true,
  verify = true, verify_params = true, step_group = true, extra_repr = true, signature = true, is_a = true, op = true,
  is = true,
}

-- The methods of an object: name -> parameters where they are declared (false: not).
local function methods_of(o)
  local out, seen = {}, {}
  local class = getmetatable(o)
  while type(class) == "table" and class.__index do
    local t = class.__index
    if type(t) ~= "table" then break end
    for name, f in next, t do
      if is_public(name) and type(f) == "function" and not protected[name] and not seen[name] then
        seen[name] = true
        out[#out + 1] = {name, args.params_of(f)}
      end
    end
    class = getmetatable(t)
  end
  table.sort(out, function(a, b) return a[1] < b[1] end)
  return out
end

-- ------------------------------------------------------------------------------------------------ running ---------

-- Runs one more line in `env`; whether it went well.  What is tried is all lines, since each stands on those before.
local function run(line, env, lines, try)
  lines[#lines + 1] = line
  return try(table.concat(lines, "\n  "), assert(load(line, "=line", "t", env)))
end

local function fresh_env()
  local env = setmetatable({print = function() end}, {__index = _G})
  assert(load(PRELUDE:gsub("local ", ""), "=prelude", "t", env))()
  return env
end

-- What may be done with an object.
local inputs = {
  "T(2, 3)", "T(4, 3)", "T(3)", "T(2, 3, 4)", "T(2, 4, 6, 6)", "T(2, 4, 8)", "T(5, 2, 4)", "T(4, 6, 6)", "T(0, 3)",
  "T(2, 0, 4)", "T(0, 2, 3)", "I(2, 2, 3)", "I(3, 4)", "T()", "D('f16', 2, 3)", "D('f64', 2, 3, 4)",
  "D('bf16', 2, 4, 6, 6)", "T(1, 2, 4, 4, 4)", "T(2, 2):gt(0.5)", "P(2, 3)", "P(2, 3, 4)",
}
local function input() return maybe(0.85) and pick(inputs) or anything() end

local function use(object)
  if nn.Module.is(object) then
    if maybe(0.6) then
      local list = {}
      for i = 1, pick {1, 1, 1, 2, 2, 3, 4} do list[i] = input() end
      if maybe(0.15) then list[#list + 1] = anything() end
      return ("y = o(%s)"):format(table.concat(list, ", "))
    end
    if maybe(0.3) then return "o:load_state_dict(o:state_dict())" end
  elseif type(object) == "table" and (object.step or object.state_dict) then
    local line = pick {
      "o:step()", "o:step()", "o:step()", "o:step(0.5)", "o:load_state_dict(o:state_dict())", "s = o:state_dict()",
      "o:load_state_dict(s)", "o.param_groups[1].lr = " .. anything(), "o.param_groups[1].params[1] = " .. anything(),
      "s = o:state_dict(); s[next(s) or 1] = " .. anything() .. "; o:load_state_dict(s)",
      "s = o:state_dict(); s.param_groups[1].lr = " .. anything() .. "; o:load_state_dict(s)",
      "s = o:state_dict(); s.state[1] = " .. anything() .. "; o:load_state_dict(s)",
      "o:step(function() return T(1):sum() end)", "o.optimizer.param_groups[1].lr = " .. anything(),
    }
    local wanted = not line:find("param_groups", 1, true)
    if line:find("^o%.param_groups") then wanted = type(object.param_groups) == "table" end
    if line:find("^s = .*%.param_groups") or line:find("s.state[1]", 1, true) then
      wanted = type(object.param_groups) == "table" and object.state ~= nil
    end
    if line:find("^o%.optimizer") then wanted = type(object.optimizer) == "table" end
    if line:find("load_state_dict(s)", 1, true) and not line:find("^s =") then wanted = false end
    if not object.load_state_dict and line:find("state_dict", 1, true) then wanted = false end
    if not object.step and line:find("step", 1, true) then wanted = false end
    if wanted then return line end
  end
  local list = methods_of(object)
  if #list == 0 then return "t = tostring(o)" end
  local m = pick(list)
  return ("r = o:%s(%s)"):format(m[1], arguments(m[2] or nil, 0.4))
end

local function one(target, try)
  local env, lines = fresh_env(), {}
  local wrong = pick {0, 0.1, 0.1, 0.4}
  if not run(("o = %s(%s)"):format(target[1], arguments(target[3], wrong)), env, lines, try) then return end
  local object = env.o
  if type(object) ~= "table" and type(object) ~= "userdata" then return end
  local class = getmetatable(object)
  if core.is_tensor(object) or type(class) ~= "table" or type(class.name) ~= "string" then return end
  for _ = 1, 1 + r:below(6) do
    if maybe(0.1) then
      run("t = tostring(o)", env, lines, try)
    else
      run(use(object), env, lines, try)
    end
    if not rawequal(env.o, object) then return end
  end
end

ampl.on_warning(function() end)
local limit = ampl.memory_limit()
harness.main(function(stream, try)
  r = stream
  ampl.memory_limit(limit)
  one(pick(targets), try)
end, "classes", "mine")
