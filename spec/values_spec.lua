-- Values at the ends of what numbers can do: conversions, scalars of other dtypes, tails, infinities and NaN.  The
-- right values are PyTorch's, or those of the formula in f64.

local ampl = require "ampl"
local tensors = require "spec.support.tensors"

local F = ampl.nn.functional
local inf, nan = math.huge, 0 / 0
local LOW = {"f16", "bf16"}

-- The elements as numbers
local function values(t) return tensors.values(t:detach()) end

-- Fails unless t holds these numbers, to a part `tol` of each (0: exactly) or of 1.
local function holds(t, want, tol, what)
  local got = values(t)
  assert.equal(#want, #got, what)
  for i, w in ipairs(want) do
    local g = got[i]
    local same = g == w or g ~= g and w ~= w or math.abs(g - w) <= (tol or 0) * math.max(1, math.abs(w))
    assert(same, ("%s: value %d is %.17g, not %.17g"):format(what or "tensor", i, g, w))
  end
end

local function gradient(f, list, dtype)
  local x = ampl.tensor(list, {dtype = dtype or "f32", requires_grad = true})
  f(x):sum():backward()
  return x.grad
end

-- ------------------------------------------------------------------------------------------------ numbers

-- Numbers that come out otherwise when they are rounded to f32 on the way, and what they are
local ONCE = {
  f16 = {{65519.999999, 65504}, {1 + 2.0 ^ -11 + 2.0 ^ -40, 1 + 2.0 ^ -10}, {-(2049 - 2.0 ^ -30), -2048}},
  bf16 = {{1 + 2.0 ^ -8 + 2.0 ^ -40, 1 + 2.0 ^ -7}, {257 - 2.0 ^ -30, 256},
          {(1 << 40) + (1 << 32) + 1, (1 << 40) + (1 << 33)}},
  f32 = {{1 + 2.0 ^ -24 + 2.0 ^ -52, 1 + 2.0 ^ -23}, {(1 << 53) + (1 << 29) + 1, 2.0 ^ 53 + 2.0 ^ 30}},
}

local function exact(v) return ampl.tensor({v, v}, {dtype = math.type(v) == "integer" and "i64" or "f64"}) end

-- What puts a number v into every element of a tensor of 2 like x
local PUT = {
  full = function(x, v) return ampl.full({2}, v, {dtype = x.dtype}) end,
  full_like = function(x, v) return ampl.full_like(x, v) end,
  tensor = function(x, v) return ampl.tensor({v, v}, {dtype = x.dtype}) end,
  fill_ = function(x, v) return x:fill_(v) end,
  ["fill_ of a view"] = function(x, v) return ampl.stack({x, x}, 2):select(2, 1):fill_(v) end,
  copy_ = function(x, v) return x:copy_(exact(v)) end,
  to = function(x, v) return exact(v):to(x.dtype) end,
  masked_fill = function(x, v) return x:masked_fill(x:eq(0), v) end,
  ["masked_fill of a view"] = function(x, v) return ampl.stack({x, x}, 2):select(2, 1):masked_fill(x:eq(0), v) end,
  ["masked_fill by a scalar"] = function(x, v) return x:masked_fill(x:eq(0), ampl.tensor(v, {dtype = "f64"})) end,
  where = function(x, v) return ampl.where(x:eq(0), v, x) end,
  ["where not"] = function(x, v) return ampl.where(x:ne(0), x, v) end,
  clamp = function(x, v) return v > 0 and x:clamp {min = v} or x:clamp {max = v} end,
  minimum = function(x, v) return ampl.minimum(ampl.full_like(x, inf), v) end,
  maximum = function(x, v) return ampl.maximum(ampl.full_like(x, -inf), v) end,
  hardtanh = function(x, v)
    return F.hardtanh(x, v > 0 and {min_val = v, max_val = inf} or {min_val = -inf, max_val = v})
  end,
  nan_to_num = function(x, v) return ampl.nan_to_num(x / 0, {nan = v}) end,
  pad = function(x, v) return F.pad(x:narrow(1, 1, 0), {1, 1}, {value = v}) end,
  index_put = function(x, v) return x:index_put({ampl.tensor {1, 2}}, v) end,
  scatter = function(x, v) return x:scatter(1, ampl.tensor {1, 2}, v) end,
  linspace = function(x, v) return ampl.linspace(v, v, 2, {dtype = x.dtype}) end,
}

describe("a number that becomes an element", function()
  local integers = {nan_to_num = true, pad = true, hardtanh = true, linspace = true,
                    ["masked_fill by a scalar"] = true}
  for name, put in pairs(PUT) do
    it("is rounded once by " .. name, function()
      for dtype, list in pairs(ONCE) do
        for _, pair in ipairs(list) do
          -- what takes floats only gets what a float can hold
          local v = integers[name] and pair[1] + 0.0 or pair[1]
          if v == pair[1] then
            holds(put(ampl.zeros(2, {dtype = dtype}), v), {pair[2], pair[2]}, 0, name .. " in " .. dtype)
          end
        end
      end
    end)
  end
end)

-- ------------------------------------------------------------------------------------------------ scalars

-- Element-wise ops of two and of three tensors that give floats, from the table.
local function ops_of(operands)
  local list = {}
  for _, r in ipairs(ampl.ops()) do
    local n = 0
    for _, a in ipairs(r.args) do
      if a.kind == "a tensor or a number" and a.required then n = n + 1 end
    end
    if r.elementwise and n == operands and ampl[r.name] then list[#list + 1] = r end
  end
  return list
end

describe("a scalar of a wider float beside 16-bit tensors", function()
  local function same(got, want, what)
    assert.equal(want.dtype, got.dtype, what)
    holds(got, values(want), 0, what)
  end

  it("keeps its value, as a number does", function()
    local n = 0
    for _, r in ipairs(ops_of(2)) do
      local f = ampl[r.name]
      local compares = f(ampl.ones(1), ampl.ones(1)).dtype == "bool"
      n = n + 1
      for _, low in ipairs(LOW) do
        for _, wide in ipairs {"f32", "f64"} do
          local x = ampl.tensor({0.0101, 0.5, 1, 3, 100}, {dtype = low})
          for _, v in ipairs {65536.5, 1.003, 1e-6, 3.14159} do
            local s = ampl.tensor(v, {dtype = wide})
            local what = ("%s of %s and %s %g"):format(r.name, low, wide, v)
            local other = compares and s:to(low):to("f32") or s:to("f32")     -- equal is what no value lies between
            local function widely(a, b) return compares and f(a, b) or f(a, b):to(low) end
            same(f(x, s), widely(x:to("f32"), other), what)
            same(f(s, x), widely(other, x:to("f32")), what .. ", the other way round")
            same(f(ampl.stack({x, x}, 2):select(2, 1), s), widely(x:to("f32"), other), what .. ", with a stride")
            if r.inplace then same(x:clone()[r.name .. "_"](x:clone(), s), f(x, s), what) end
          end
        end
      end
    end
    assert(n > 15, "the table has few ops of two tensors")
  end)

  it("keeps its value as one of three", function()
    for _, low in ipairs(LOW) do
      local x, y = ampl.tensor({0.5, 3}, {dtype = low}), ampl.tensor({2, -5}, {dtype = low})
      local s = ampl.tensor(1.003, {dtype = "f64"})
      local a, b, c = x:to("f32"), y:to("f32"), s:to("f32")
      same(ampl.lerp(x, y, s), ampl.lerp(a, b, c):to(low), "weight of lerp")
      same(ampl.lerp(s, y, x), ampl.lerp(c, b, a):to(low), "start of lerp")
      same(ampl.addcmul(x, s, y, {value = 100}), ampl.addcmul(a, c, b, {value = 100}):to(low), "tensor1 of addcmul")
      same(ampl.addcdiv(x, y, s), ampl.addcdiv(a, b, c):to(low), "tensor2 of addcdiv")
      same(ampl.where(x:gt(1), x, s), ampl.where(a:gt(1), a, c):to(low), "y of where")
      same(x:clamp(s, s), ampl.full({2}, 1.003, {dtype = low}), "bounds of clamp")
      same(x:masked_fill(x:gt(1), s), ampl.where(a:gt(1), c, a):to(low), "value of masked_fill")
    end
  end)

  it("gets a gradient in its own dtype", function()
    for _, low in ipairs(LOW) do
      local x = ampl.tensor({100, 4.5, 3}, {dtype = low, requires_grad = true})
      local s = ampl.tensor(1.003, {requires_grad = true})
      local y = x * s
      y:sum():backward()
      assert.equal("f32", s.grad.dtype)
      holds(s.grad, {107.5}, 0, "gradient of the scalar")
      holds(x.grad, values(ampl.full({3}, 1.003, {dtype = low})), 0, "gradient of the tensor")
    end
  end)

  it("decides with others of its kind", function()
    assert.equal("f32", (ampl.tensor(1, {dtype = "f16"}) * ampl.tensor(1.0)).dtype)
    assert.equal("f32", (ampl.ones(1, {dtype = "f16"}) * ampl.ones(1)).dtype)
  end)
end)

-- ------------------------------------------------------------------------------------------------ tails

describe("in the tails", function()
  local far = {-10, -1000, -1e8, -3e38, -6.5}

  it("erf is exactly 1, and gelu and its gradient vanish", function()
    holds(ampl.erf(ampl.tensor {3.99, 4, 5, 100, 1e30, inf, -4, -inf}), {1, 1, 1, 1, 1, 1, -1, -1}, 1e-7)
    holds(ampl.erf(ampl.tensor {4, 5, 1e30, inf, -4, -1e8}), {1, 1, 1, 1, -1, -1}, 0)
    holds(F.gelu(ampl.tensor(far)), {0, 0, 0, 0, 0}, 1e-9)
    holds(gradient(F.gelu, far), {0, 0, 0, 0, 0}, 1e-8)
    holds(F.gelu(ampl.tensor {10, 1000, 3e38}), {10, 1000, 3.0000000054977558e38}, 1e-7)
    holds(gradient(F.gelu, {10, 1000, 3e38, inf}), {1, 1, 1, nan}, 1e-7)
  end)

  -- Functions that end in a constant or a line on each side: at -big and big, and their gradients
  local ends = {
    sigmoid = {0, 1, 0, 0}, tanh = {-1, 1, 0, 0}, erf = {-1, 1, 0, 0}, logsigmoid = {"x", 0, 1, 0},
    softplus = {0, "x", 0, 1}, silu = {0, "x", 0, 1}, mish = {0, "x", 0, 1},
    gelu = {0, "x", 0, 1}, elu = {-1, "x", 0, 1}, celu = {-1, "x", 0, 1},
    expm1 = {-1, inf, 0, inf}, exp = {0, inf, 0, inf}, atan = {-math.pi / 2, math.pi / 2, 0, 0},
    softsign = {-1, 1, 0, 0}, hardsigmoid = {0, 1, 0, 0}, hardswish = {0, "x", 0, 1}, relu6 = {0, 6, 0, 0},
  }
  for name, want in pairs(ends) do
    it(name .. " keeps to its ends", function()
      local f = F[name] or ampl[name]
      for _, dtype in ipairs {"f32", "f64"} do
        for _, big in ipairs {1e3, 1e5, 1e8, 1e15, 1e30, 3e37} do
          for side, x in ipairs {-big, big} do
            local t = ampl.full({40}, x, {dtype = dtype})
            local v, y = values(t)[1], values(f(t))
            local target = want[side] == "x" and v or want[side]
            local slack = (name == "softsign" or name == "atan") and 2 / big + 1e-7 or 1e-6
            for _, i in ipairs {1, 40} do               -- in a vector and in what is left over
              assert(y[i] == target or math.abs(y[i] - target) <= slack * math.abs(target) + 1e-30,
                     ("%s(%g) in %s is %.9g, not %.9g"):format(name, x, dtype, y[i], target))
            end
            local g = values(gradient(f, {x}, dtype))[1]
            local slope = want[side + 2]
            assert(g == slope or math.abs(g - slope) <= (slack == 1e-6 and 1e-7 or 1e-5),
                   ("gradient of %s at %g in %s is %.9g, not %.9g"):format(name, x, dtype, g, slope))
          end
        end
      end
    end)
  end

  it("logarithms of sums keep their small terms", function()
    holds(ampl.expm1(ampl.tensor {1e-20, -1e-20, 1e-8}), {1e-20, -1e-20, 1e-8}, 0x1p-40)
    assert(values(F.logsigmoid(ampl.tensor {50}))[1] < 0)
    assert(values(F.softplus(ampl.tensor {-50}))[1] > 0)
    assert(values(ampl.sigmoid(ampl.tensor {-80}))[1] > 0)
    assert(values(ampl.log1p(ampl.tensor {1e-30}))[1] > 0)
  end)
end)

-- ------------------------------------------------------------------------------------------------ rows

-- softmax, its logarithm, logsumexp and cross_entropy for class 2 of rows with infinities and NaN
local ROWS = {
  {{inf, 1, 2}, {nan, nan, nan}, {nan, nan, nan}, inf, nan},
  {{inf, inf, 1}, {nan, nan, nan}, {nan, nan, nan}, inf, nan},
  {{inf, -inf, 0}, {nan, nan, nan}, {nan, nan, nan}, inf, nan},
  {{-inf, -inf, -inf}, {nan, nan, nan}, {nan, nan, nan}, -inf, nan},
  {{nan, 1, 2}, {nan, nan, nan}, {nan, nan, nan}, nan, nan},
  {{nan, inf, 1}, {nan, nan, nan}, {nan, nan, nan}, nan, nan},
  {{-inf, 0, 0}, {0, 0.5, 0.5}, {-inf, -0.69314718055994531, -0.69314718055994531}, 0.69314718055994531,
   0.69314718055994531},
  {{-inf, -inf, 3}, {0, 0, 1}, {-inf, -inf, 0}, 3, inf},
}

describe("a row with infinities", function()
  local function check(dtype, length, lay)
    for _, row in ipairs(ROWS) do
      local x = ampl.full({5, length}, -inf, {dtype = dtype})
      x:narrow(2, 1, 3):copy_(ampl.tensor(row[1], {dtype = dtype}))
      x = lay(x)
      local what = ("%s, {%g, %g, %g} of %d"):format(dtype, row[1][1], row[1][2], row[1][3], length)
      local tol = dtype == "f64" and 1e-14 or 1e-6
      holds(F.softmax(x, 2):select(1, 4):narrow(1, 1, 3), row[2], tol, "softmax of " .. what)
      holds(F.log_softmax(x, 2):select(1, 4):narrow(1, 1, 3), row[3], tol, "log_softmax of " .. what)
      holds(ampl.logsumexp(x, 2):select(1, 4), {row[4]}, tol, "logsumexp of " .. what)
      local loss = F.cross_entropy(x, ampl.full({5}, 2, {dtype = "i64"}), {reduction = "none"})
      holds(loss:select(1, 4), {row[5]}, tol, "cross_entropy of " .. what)
    end
  end
  for _, dtype in ipairs {"f32", "f64"} do
    it("comes out as PyTorch's in " .. dtype, function()
      for _, length in ipairs {3, 40, 2100, 17000} do
        check(dtype, length, function(x) return x end)
        check(dtype, length, function(x) return x:t():contiguous():t() end)
      end
    end)
  end
end)

-- ------------------------------------------------------------------------------------------------ NaN

describe("the gradient at NaN", function()
  local function zeros(x) return ampl.zeros_like(x:detach()) end
  local function none(f) return function(x) return f(x, zeros(x), {reduction = "none"}) end end
  local want = {
    {"clamp", 0, function(x) return x:clamp(-1, 1) end},
    {"clamp from below", 0, function(x) return x:clamp {min = -1} end},
    {"clamp from above", 0, function(x) return x:clamp {max = 1} end},
    {"clamp by tensors", 1, function(x) return x:clamp(zeros(x) - 1, zeros(x) + 1) end},
    {"hardtanh", 1}, {"relu6", 1}, {"relu", 1}, {"elu", 1}, {"celu", 1}, {"selu", 1.0507009873554805}, {"hardswish", 1},
    {"hardsigmoid", 0}, {"leaky_relu", 0.01}, {"abs", 0}, {"sign", 0}, {"nan_to_num", 0}, {"silu", nan}, {"gelu", nan},
    {"mish", nan}, {"sigmoid", nan}, {"tanh", nan}, {"softplus", nan}, {"softsign", nan}, {"logsigmoid", nan},
    {"maximum", 1, function(x) return ampl.maximum(x, zeros(x)) end},
    {"minimum", 1, function(x) return ampl.minimum(x, zeros(x)) end},
    {"amax", nan, function(x) return x:amax(1) end}, {"amin", nan, function(x) return x:amin(1) end},
    {"max", 1, function(x) return (x:max(1)) end}, {"l1_loss", 0, none(F.l1_loss)}, {"mse_loss", nan, none(F.mse_loss)},
    {"smooth_l1_loss", nan, none(F.smooth_l1_loss)}, {"huber_loss", nan, none(F.huber_loss)},
  }
  for _, case in ipairs(want) do
    it("is PyTorch's: " .. case[1], function()
      local f = case[3] or F[case[1]] or ampl[case[1]]
      for _, dtype in ipairs {"f32", "f64"} do
        holds(gradient(f, {nan}, dtype), {case[2]}, 1e-6, case[1] .. " in " .. dtype)
        local x = ampl.tensor({nan}, {dtype = dtype, requires_grad = true})        -- and so is the formula's of ops
        local g = ampl.grad(f(x):sum(), x, {create_graph = true})
        holds(type(g) == "table" and g[1] or g, {case[2]}, 1e-6, case[1] .. " with a graph in " .. dtype)
      end
    end)
  end
end)
