-- Samples of the element-wise ops of one operand (kernels/unary.def) and of activations.

local function one(shape, o)
  return {args = function(make) return make(shape, o) end}
end

-- Plain values, and a shape whose last run is longer than a vector of any CPU.
local function plain(o, ...) return {one({3, 4}, o), one({2, 37}, o), ...} end

local function with(options, o)
  return {args = function(make) return make({3, 5}, o), options end}
end

local function integers(...)
  return {args = function(make) return make({7}, {int = true}) end, grad = false}, ...
end

-- Whose gradient is 0 everywhere, and no function of x.
local function steps(...)
  local list = plain(nil, integers(), ...)
  for _, sample in ipairs(list) do sample.gradgrad = false end
  return list
end

local positive, inside = {positive = true}, {lo = -0.875, hi = 0.875}

return {
  neg = plain(nil, integers()), abs = plain(nil, integers()), square = plain(nil, integers()),
  relu = plain(nil, integers()),
  sign = steps(), floor = steps(), ceil = steps(), trunc = steps(),
  round = steps(with({decimals = 1}), with({decimals = -1}, {lo = -60, hi = 60})),
  sqrt = plain(positive), rsqrt = plain(positive), reciprocal = plain(positive),
  exp = plain(nil, integers()), expm1 = plain(), log = plain(positive), log1p = plain(positive), log2 = plain(positive),
  log10 = plain(positive), sin = plain(), cos = plain(), tan = plain({lo = -1, hi = 1}), asin = plain(inside),
  acos = plain(inside), atan = plain(), sinh = plain(), cosh = plain(), tanh = plain(), erf = plain(),
  erfinv = plain(inside), sigmoid = plain(nil, integers()), logsigmoid = plain(),
  isnan = plain(), isinf = plain(), isfinite = plain(), logical_not = plain(nil, integers()),
  nan_to_num = plain(nil, {
    args = function(make)
      return make({4}) / make({4}, {int = true, lo = 0, hi = 1}), {nan = 2, posinf = 3, neginf = -4}
    end,
    grad = false, note = "infinities",
  }),
  relu6 = plain({lo = -4, hi = 12}), hardtanh = plain(nil, with {min_val = -0.5, max_val = 1.25}),
  leaky_relu = plain(nil, with {negative_slope = 0.25}), elu = plain(nil, with {alpha = 1.5}),
  celu = plain(nil, with {alpha = 0.75}), selu = plain(), silu = plain(), mish = plain(), softsign = plain(),
  gelu = plain(nil, with {approximate = "tanh"}), hardswish = plain({lo = -5, hi = 5}),
  -- its slope, as PyTorch's, is 1/6 rounded to f32
  hardsigmoid = {{args = function(make) return make({4, 9}, {lo = -5, hi = 5}) end, tol = {f64 = 1e-6}}},
  softplus = plain({lo = -4, hi = 4}, with({beta = 2, threshold = 3}, {lo = -4, hi = 4})),
  prelu = {
    {args = function(make) return make({2, 3, 4}), make({3}, {lo = 0.25, hi = 0.5}) end},
    {args = function(make) return make({5}), make({1}, {lo = 0.25, hi = 0.5}) end},
  },
  glu = {
    {args = function(make) return make({3, 8}) end},
    {args = function(make) return make({4, 3, 2}), {dim = 1} end},
  },
  dropout = {
    {args = function(make) return make({5, 33}), {p = 0.25} end},
    {args = function(make) return make({7}), {p = 0.5, training = false} end},
    {args = function(make) return make({7}), {p = 1} end},
  },
}
