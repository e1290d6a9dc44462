-- Default initialisation of layers and nn.init: the facts of golden/init/README.md, tested by drawing.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"
local tally = require("spec.support.tally")("golden init")
local reason = require "spec.support.pending"

local folder, missing = folders.golden("init")

local function lookup(t, name)
  local ok, v = pcall(function() return t[name] end)
  return ok and v or nil
end

local function nested(t)                -- numbers of nested lists, in one list
  local out = {}
  local function add(v)
    if type(v) == "table" then
      for _, e in ipairs(v) do add(e) end
    else
      out[#out + 1] = v
    end
  end
  add(t)
  return out
end

-- nil when the numbers look drawn from the fact's distribution.
local function check_drawn(fact, x)
  local n, sum, squares, low, high = #x, 0, 0, math.huge, -math.huge
  for _, v in ipairs(x) do
    sum = sum + v
    low, high = math.min(low, v), math.max(high, v)
  end
  local mean = sum / n
  for _, v in ipairs(x) do squares = squares + (v - mean) ^ 2 end
  local std = math.sqrt(squares / (n - 1))
  local want_mean = fact.mean or fact.options and fact.options.mean
  want_mean = want_mean or fact.bounds and (fact.bounds[1] + fact.bounds[2]) / 2 or 0
  local want_std = fact.std
  if math.abs(mean - want_mean) > 5 * want_std / math.sqrt(n) then
    return ("mean %g, expected %g"):format(mean, want_mean)
  end
  if math.abs(std - want_std) > 5 * want_std / math.sqrt(2 * n) then
    return ("std %g, expected %g"):format(std, want_std)
  end
  local a, b = table.unpack(fact.bounds or fact.bound and {-fact.bound, fact.bound} or {})
  if not a then return nil end
  local slack = (b - a) * 1e-6
  if low < a - slack or high > b + slack then
    return ("values from %g to %g, bounds %g to %g"):format(low, high, a, b)
  end
  if fact.distribution == "uniform" and n >= 2000 and (low > a + 0.02 * (b - a) or high < b - 0.02 * (b - a)) then
    return ("values from %g to %g do not come near the bounds %g and %g"):format(low, high, a, b)
  end
end

local function check_constant(value, x)
  for _, v in ipairs(x) do
    if v ~= value then return ("%g, expected %g everywhere"):format(v, value) end
  end
end

-- Numbers of the parameter in as many fresh layers as give at least `n`.
local function draw_layer(fact, n)
  local class, x = ampl.nn[fact.layer], {}
  repeat
    local args = {table.unpack(fact.args)}
    if next(fact.opts) then args[#args + 1] = fact.opts end
    local t = class(table.unpack(args)):state_dict()[fact.param]
    if not t then return nil, "there is no " .. fact.param end
    local shape = tensors.shape_text(t.shape)
    if shape ~= tensors.shape_text(fact.shape) then return nil, "shape " .. shape end
    local v = tensors.values(t)
    table.move(v, 1, #v, #x + 1, x)
  until #x >= n
  return x
end

local function check_orthogonal(fact)
  local t = ampl.empty(fact.shape, {dtype = "f64"})
  ampl.nn.init.orthogonal_(t, fact.options)
  local rows, columns, x = fact.shape[1], 1, tensors.values(t)
  for i = 2, #fact.shape do columns = columns * fact.shape[i] end
  local wide = rows <= columns
  local function at(i, k)               -- element k of the i-th vector that must be orthonormal
    return wide and x[(i - 1) * columns + k] or x[(k - 1) * columns + i]
  end
  local gain = fact.options.gain or 1
  for i = 1, math.min(rows, columns) do
    for j = 1, i do
      local dot = 0
      for k = 1, math.max(rows, columns) do dot = dot + at(i, k) * at(j, k) end
      local want = i == j and gain ^ 2 or 0
      if math.abs(dot - want) > 1e-9 then
        return ("vectors %d and %d: product %g, expected %g"):format(i, j, dot, want)
      end
    end
  end
end

local function apply(f, t, options)
  if next(options) then f(t, options) else f(t) end
end

local function check_sparse(fact, t)
  local rows, columns, x, drawn = fact.shape[1], fact.shape[2], tensors.values(t), {}
  for c = 1, columns do
    local zeros = 0
    for r = 1, rows do
      local v = x[(r - 1) * columns + c]
      if v == 0 then zeros = zeros + 1 else drawn[#drawn + 1] = v end
    end
    if zeros ~= fact.zeros_per_column then
      return ("column %d: %d zeros, expected %d"):format(c, zeros, fact.zeros_per_column)
    end
  end
  return check_drawn({mean = 0, std = fact.options.std, distribution = "normal"}, drawn)
end

local function check_function(fact)
  local f = lookup(ampl.nn.init, fact["function"])
  if not f then return false, fact["function"] end
  local t = ampl.empty(fact.shape)
  apply(f, t, fact.options)
  if fact.zeros_per_column then return check_sparse(fact, t) end
  if fact.distribution == "constant" then
    return check_constant(tonumber(fact.formula) or fact.seen.mean, tensors.values(t))
  end
  return check_drawn(fact, tensors.values(t))
end

local checks = {}

function checks.gain(fact)
  local gain = ampl.nn.init.calculate_gain(fact.nonlinearity, fact.param ~= json.null and fact.param or nil)
  if math.abs(gain - fact.gain) > 1e-12 * math.abs(fact.gain) then
    return ("%.17g, expected %.17g"):format(gain, fact.gain)
  end
end

-- The fans show in the bounds of kaiming_uniform_: they have no function of their own.
function checks.fan(fact)
  local t = ampl.empty(fact.shape, {dtype = "f64"})
  for mode, fan in pairs {fan_in = fact.fan_in, fan_out = fact.fan_out} do
    local bound, seen = math.sqrt(3 / fan), 0
    for _ = 1, 50 do
      ampl.nn.init.kaiming_uniform_(t, {mode = mode, nonlinearity = "linear"})
      for _, v in ipairs(tensors.values(t)) do seen = math.max(seen, math.abs(v)) end
    end
    if seen > bound or seen < 0.97 * bound then return ("%s: values up to %g, bound %g"):format(mode, seen, bound) end
  end
end

checks["function"] = check_function

function checks.orthogonal(fact) return check_orthogonal(fact) end

function checks.exact(fact)
  local t = ampl.empty(fact.shape, {dtype = "f64"})
  local f = lookup(ampl.nn.init, fact["function"])
  if not f then return false, fact["function"] end
  apply(f, t, fact.options)
  return tensors.compare_values(tensors.values(t), nested(fact.value), fact.shape, 1e-12)
end

describe("golden init", function()
  if not folder then
    pending(reason("golden", missing))
    return
  end
  setup(function() ampl.manual_seed(20) end)
  teardown(function() tally:report() end)

  local function judge(ok, why, lacks)
    if ok and why == false then
      tally:skip("there is no", lacks)
      pending(reason("no_model", lacks))
    elseif ok and why == nil then
      tally:pass()
    else
      tally:fail()
      error(tostring(why), 0)
    end
  end

  for _, fact in ipairs(json.lines(folder .. "/layers.jsonl")) do
    it(("%s(%s) %s"):format(fact.layer, table.concat(nested(fact.args), ", "), fact.param), function()
      if not lookup(ampl.nn, fact.layer) then return judge(true, false, "nn." .. fact.layer) end
      judge(pcall(function()
        local x, why = draw_layer(fact, fact.distribution == "constant" and 1 or 20000)
        if not x then return why end
        if fact.distribution == "constant" then return check_constant(fact.value, x) end
        return check_drawn(fact, x)
      end))
    end)
  end

  for i, fact in ipairs(json.lines(folder .. "/functions.jsonl")) do
    local about = fact["function"] or fact.nonlinearity or tensors.shape_text(fact.shape)
    it(("%d: %s %s"):format(i, fact.fact, about), function()
      if not lookup(ampl.nn, "init") then return judge(true, false, "nn.init") end
      judge(pcall(checks[fact.fact], fact))
    end)
  end
end)
