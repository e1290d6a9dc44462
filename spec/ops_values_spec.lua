-- Every op of the table beside PyTorch: values and gradients in f64, f32, f16 and bf16, from spec/golden/ops.jsonl,
-- which scripts/gen-golden makes and describes.  Ops that draw at random are held to facts about what they draw.  An op
-- with neither fails.

local ampl = require "ampl"
local folders = require "spec.support.folders"
local json = require "spec.support.json"
local samples = require "spec.support.samples"
local tensors = require "spec.support.tensors"

local TOLERANCE = {f64 = 1e-10, f32 = 1e-5, f16 = 2.0 ^ -9, bf16 = 2.0 ^ -6}    -- of outputs; gradients get twice that
local FLOOR = {f64 = 2.0 ^ -6, f32 = 2.0 ^ -6, f16 = 0.25, bf16 = 0.25}
local DTYPES = os.getenv("AMPL_SPEC_SANITIZE") and {"f64", "f16"} or {"f64", "f32", "f16", "bf16"}

-- Cases by op; the file's first line says what made it.
local about, cases = nil, {}
for i, line in ipairs(json.lines(folders.project .. "spec/golden/ops.jsonl")) do
  if i == 1 then
    about = line
  else
    cases[line.op] = cases[line.op] or {}
    table.insert(cases[line.op], line)
  end
end

-- ------------------------------------------------------------------------------------------------ arguments --------

local function numbers(list)
  local out = {}
  for i, v in ipairs(list) do out[i] = json.number(v) end
  return out
end

local function tensor(t, dtype)
  local list = numbers(t.v)
  if t.t == "b" then
    for i, v in ipairs(list) do list[i] = v == 1 end
  elseif t.t == "f" then
    for i, v in ipairs(list) do list[i] = v + 0.0 end
  end
  dtype = t.t == "b" and "bool" or t.t == "i" and "i64" or dtype
  if #list == 0 then return ampl.zeros(t.s, {dtype = dtype}) end
  return ampl.tensor(list, {dtype = dtype}):view(t.s)
end

-- v as an argument; tensors that want a gradient are added to `leaves`.
local function decode(v, dtype, leaves)
  if type(v) ~= "table" then return v end
  if v.t then
    local t = tensor(v, dtype)
    if v.g then leaves[#leaves + 1] = t:requires_grad_(true) end
    return t
  end
  local out, names = {}, {}
  if v.l then
    for i, e in ipairs(v.l) do out[i] = decode(e, dtype, leaves) end
    return out
  end
  for name in pairs(v.o) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do out[name] = decode(v.o[name], dtype, leaves) end
  return out
end

-- ------------------------------------------------------------------------------------------------ running ----------

local function cotangent(y, k)
  local list = {}
  for i = 0, y:numel() - 1 do list[i + 1] = ((5 * i + 3 * k) % 9 - 4) / 4 end
  return ampl.tensor(list, {dtype = y.dtype}):view(y.shape)
end

local function compare(what, got, want, dtype, tol)
  local why = tensors.compare_values(tensors.values(got), numbers(want.v), want.s,
                                     tensors.floats[got.dtype] and tol or 0, FLOOR[dtype])
  assert(not why, why and what .. " " .. why)
end

local function check_outputs(case, out, dtype, tol, has_floats)
  assert.equal(#case.out, #out)
  for k, want in ipairs(case.out) do
    local y, what = out[k], ("output %d"):format(k)
    assert(tensors.is(y), what .. " is no tensor")
    assert.equal(tensors.shape_text(want.s), tensors.shape_text(y.shape), what)
    if want.t == "f" then
      assert.is_truthy(tensors.floats[y.dtype], what)
      if has_floats then assert.equal(dtype, y.dtype, what) end
    else
      assert.equal(want.t == "b" and "bool" or "i64", y.dtype, what)
    end
    compare(what, y, want, dtype, tol)
  end
end

local function check_gradients(case, out, leaves, dtype, tol)
  local ys, cots = {}, {}
  for k, y in ipairs(out) do
    if tensors.floats[y.dtype] and y.requires_grad then
      ys[#ys + 1] = y
      cots[#cots + 1] = cotangent(y, k - 1)
    end
  end
  assert(#ys > 0, "no output has a gradient")
  local grads = table.pack(ampl.grad(ys, leaves, {grad_outputs = cots, allow_unused = true}))
  for i, x in ipairs(leaves) do
    local want, what = case.grad[i], ("gradient %d"):format(i)
    local got = grads[i] or ampl.zeros_like(x)          -- PyTorch says none where here it may be 0
    if want == json.null then want = ampl.zeros_like(x):reshape(-1):totable() end
    assert.equal(dtype, got.dtype, what)
    compare(what, got, {v = want, s = x.shape}, dtype, tol)
  end
end

local function check_changes(case, args, dtype, tol)
  for name, want in pairs(case.after or {}) do
    local t = args[#args][name]
    compare(name .. " after the call", t, {v = want, s = t.shape}, dtype, tol)
  end
end

local function run(case, dtype)
  local leaves, args, has_floats = {}, {n = #case.args}, false
  for i, a in ipairs(case.args) do
    args[i] = decode(a, dtype, leaves)
    has_floats = has_floats or (type(a) == "table" and (a.t == "f" or a.l and type(a.l[1]) == "table"
                                                          and a.l[1].t == "f")) or false
  end
  local f = samples.callable(case.op, args[1])
  assert(f, "there is no function or method " .. case.op)
  local out = table.pack(f(table.unpack(args, 1, args.n)))
  local tol = TOLERANCE[dtype] * (case.tol or 1)
  check_outputs(case, out, dtype, tol, has_floats)
  check_changes(case, args, dtype, tol)
  if case.grad then check_gradients(case, out, leaves, dtype, 2 * tol) end
end

local function runs(case, dtype)
  if not case.only then return true end
  for _, d in ipairs(case.only) do
    if d == dtype then return true end
  end
  return false
end

local function describe_case(case)
  local text = {}
  for i, a in ipairs(case.args) do
    if type(a) ~= "table" then text[i] = tostring(a)
    elseif a.t then text[i] = a.t .. " {" .. table.concat(a.s, ", ") .. "}"
    else text[i] = a.l and "list" or "options" end
    for name, v in pairs(type(a) == "table" and a.o or {}) do
      text[i] = text[i] .. " " .. name .. (type(v) == "table" and "" or "=" .. tostring(v))
    end
  end
  return case.op .. "(" .. table.concat(text, ", ") .. ")"
end

-- ------------------------------------------------------------------------------------------------ facts ------------

local N = os.getenv("AMPL_SPEC_SANITIZE") and 2000 or 40000

-- Mean and standard deviation of x, which must lie within 5 standard errors of what they should be.
local function moments(x, mean, std)
  local v = tensors.values(x)
  local n, sum = #v, 0
  for _, e in ipairs(v) do sum = sum + e end
  local squares, m = 0, sum / n
  for _, e in ipairs(v) do squares = squares + (e - m) ^ 2 end
  assert(math.abs(m - mean) <= 5 * std / math.sqrt(n), ("mean %g, not %g"):format(m, mean))
  local s = math.sqrt(squares / (n - 1))
  assert(math.abs(s - std) <= 5 * std / math.sqrt(n), ("standard deviation %g, not %g"):format(s, std))
end

local function within(x, lo, hi)
  for _, e in ipairs(tensors.values(x)) do assert(e >= lo and e <= hi, ("%g is not in [%g, %g]"):format(e, lo, hi)) end
end

-- One seed, one draw; another seed, another.
local function repeats(draw)
  local function values(seed)
    ampl.manual_seed(seed)
    return tensors.values(draw())
  end
  local a, b, c = values(3), values(3), values(4)
  assert.same(a, b)
  local same = true
  for i = 1, #a do same = same and a[i] == c[i] end
  assert(not same, "another seed gives the same values")
end

local function drawn(draw, fact)
  ampl.manual_seed(11)
  fact(draw())
  repeats(draw)
end

local function uniform(x)
  within(x, 0, 1)
  for _, e in ipairs(tensors.values(x)) do assert(x.dtype ~= "f32" or e < 1, "1 is no value of [0, 1)") end
  moments(x, 0.5, math.sqrt(1 / 12))
end

-- Shares of the values 1 .. n.
local function shares(x, want)
  local count, v = {}, tensors.values(x)
  for i = 1, #want do count[i] = 0 end
  for _, e in ipairs(v) do count[e] = assert(count[e], ("%g is no value"):format(e)) + 1 end
  for i, p in ipairs(want) do
    local error = 5 * math.sqrt(p * (1 - p) / #v)
    assert(math.abs(count[i] / #v - p) <= error + 1e-12, ("share %g of %d, not %g"):format(count[i] / #v, i, p))
  end
end

local facts = {
  rand = function() drawn(function() return ampl.rand(N) end, uniform) end,
  rand_like = function() drawn(function() return ampl.rand_like(ampl.zeros(N)) end, uniform) end,
  randn = function() drawn(function() return ampl.randn(N) end, function(x) moments(x, 0, 1) end) end,
  randn_like = function()
    drawn(function() return ampl.randn_like(ampl.zeros(N)) end, function(x)
      moments(x, 0, 1)
      moments(x:square(), 1, math.sqrt(2))
      moments(x:pow(3), 0, math.sqrt(15))
    end)
  end,
  randint = function()
    drawn(function() return ampl.randint(3, 7, N) end, function(x)
      assert.equal("i64", x.dtype)
      shares(x - 2, {0.25, 0.25, 0.25, 0.25})
    end)
  end,
  randperm = function()
    drawn(function() return ampl.randperm(500) end, function(x)
      assert.equal("i64", x.dtype)
      local v = tensors.values(x)
      local moved = 0
      for i, e in ipairs(v) do moved = moved + (e ~= i and 1 or 0) end
      assert(moved > 450, "hardly a permutation")
      table.sort(v)
      for i, e in ipairs(v) do assert.equal(i, e) end
    end)
    local first = {}
    for i = 1, 2000 do first[i] = ampl.randperm(4)[1]:item() end
    shares(ampl.tensor(first), {0.25, 0.25, 0.25, 0.25})
  end,
  bernoulli = function()
    for _, p in ipairs {0.0, 0.2, 0.75, 1.0} do
      ampl.manual_seed(5)
      local x = ampl.bernoulli(ampl.full({N}, p))
      shares(x + 1, {1 - p, p})
    end
    repeats(function() return ampl.bernoulli(ampl.full({N}, 0.5)) end)
  end,
  dropout = function()
    local F = ampl.nn.functional
    ampl.manual_seed(5)
    local x = ampl.full({N}, 2.0):requires_grad_(true)
    local y = F.dropout(x, 0.2)
    shares(y:detach() / 2.5 + 1, {0.2, 0.8})
    y:sum():backward()
    assert.same(tensors.values(y / 2), tensors.values(x.grad))
    assert.same(tensors.values(x), tensors.values(F.dropout(x, 0.2, false)))
    assert.equal(0, F.dropout(x, 1.0):abs():sum():item())
    assert.same(tensors.values(x), tensors.values(F.dropout(x, 0.0)))
    moments(F.dropout(x:detach()), 2, 2)                -- p is 0.5
    repeats(function() return F.dropout(x, 0.5) end)
  end,
  multinomial = function()
    local weights = ampl.tensor {1.0, 0.0, 3.0, 4.0}
    drawn(function() return ampl.multinomial(weights, N, {replacement = true}) end, function(x)
      assert.equal("i64", x.dtype)
      shares(x, {0.125, 0, 0.375, 0.5})
    end)
    local first = {}
    for i = 1, 2000 do
      local v = ampl.multinomial(weights, 3):totable()
      first[i] = v[1]
      table.sort(v)
      assert.same({1, 3, 4}, v)
    end
    shares(ampl.tensor(first), {0.125, 0, 0.375, 0.5})
  end,
  empty = function()
    local x = ampl.empty(2, 3)
    assert.same({2, 3}, x.shape)
    assert.equal("f32", x.dtype)
    assert.equal("i64", ampl.empty({4}, {dtype = "i64"}).dtype)
  end,
  empty_like = function()
    local x = ampl.empty_like(ampl.zeros(2, 3, {dtype = "f64"}))
    assert.same({2, 3}, x.shape)
    assert.equal("f64", x.dtype)
  end,
}

-- ------------------------------------------------------------------------------------------------ specs ------------

describe("values", function()
  it("are from PyTorch", function()
    assert.matches("^2%.", about.PyTorch)
    assert.equal("scripts/gen-golden", about["made by"])
  end)

  for _, op in ipairs(ampl.ops()) do
    local name = type(op) == "table" and op.name or op
    it("of " .. name, function()
      local list = cases[name] or {}
      if facts[name] then facts[name]()
      else assert(#list >= 2, name .. " has " .. #list .. " cases; two are needed (see scripts/gen-golden)") end
      local differentiable = false
      for _, case in ipairs(list) do
        differentiable = differentiable or case.grad ~= nil
        for _, dtype in ipairs(DTYPES) do
          if runs(case, dtype) then
            local ok, e = pcall(run, case, dtype)
            if not ok then error(("%s, %s: %s"):format(describe_case(case), dtype, tostring(e)), 0) end
          end
        end
      end
      if #list > 0 and ampl.ops(name).differentiable then
        assert(differentiable, name .. " is differentiable, and no case has gradients")
      end
    end)
  end

  it("of attention drop what dropout_p says", function()
    local F = ampl.nn.functional
    ampl.manual_seed(5)
    local q, v = ampl.zeros(1, 1, N // 20, 4), ampl.ones(1, 1, 20, 1)
    local y = F.scaled_dot_product_attention(q, ampl.zeros(1, 1, 20, 4), v, {dropout_p = 0.25})
    -- a mean of 20 values that are 0 or 4 / 3
    moments(y, 1, math.sqrt(1 / 3 / 20))
  end)

  it("are of ops that there are", function()
    for name in pairs(cases) do assert(ampl.ops(name), name .. " is no op") end
    for name in pairs(facts) do assert(ampl.ops(name), name .. " is no op") end
  end)
end)
