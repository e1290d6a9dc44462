-- Samples of reductions, positions of extremes, running sums, softmax: core/ops/reduce.c, extreme.c, scan.c, softmax.c.

local function of(shape, o, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape, o), table.unpack(rest, 1, rest.n) end}
end

-- Without a gradient by nature, or of operands that want none.
local function flat(shape, o, ...)
  local sample = of(shape, o, ...)
  sample.grad = false
  return sample
end

local distinct, positive, int, bool = {distinct = true}, {positive = true}, {int = true}, {bool = true}

-- All of it, one dimension, several, kept ones, long rows and long columns.
local function reductions(o, ...)
  return {
    of({2, 5}, o), of({2, 3, 4}, o, 2), of({2, 3, 4, 2}, o, {1, 3}, {keepdim = true}), of({3, 70}, o, -1),
    of({70, 3}, o, 1), ...,
  }
end

local function along(o, ...)
  return {of({2, 5}, o, 2), of({2, 3, 4}, o, 2), of({4, 3, 2}, o, 1), of({3, 40}, o, -1), of({}, o, 1), ...}
end

local function either(o, ...) return along(o, of({4, 3, 2}, o, 1, {keepdim = true}), of({2, 3, 4}, o), ...) end

return {
  sum = reductions(nil, of({}), flat({3, 4}, int, 1), flat({3, 4}, bool), of({2, 3}, nil, 2, {dtype = "f64"}),
    flat({2, 3}, int, {dtype = "f32"})),
  mean = reductions(nil, of({}), of({2, 3}, nil, 2, {dtype = "f64"}), flat({2, 3}, int, {dtype = "f32"})),
  prod = {
    of({2, 5}, positive), of({2, 3, 4}, positive, 2), of({4, 3, 2}, nil, 1, {keepdim = true}), of({}, positive),
    flat({3, 4}, int, 2), of({3, 2}, nil, 1, {dtype = "f64"}),
  },
  var = reductions(nil, of({3, 4}, nil, 2, {correction = 0}), of({3, 4}, nil, {correction = 1.5})),
  std = reductions(nil, of({3, 4}, nil, 2, {correction = 0}), of({3, 4}, nil, {correction = 1.5})),
  norm = {
    of({2, 5}), of({3, 4}, nil, {dim = 2}), of({2, 3, 4}, nil, {dim = {1, 3}, keepdim = true}),
    of({3, 70}, nil, {dim = 2}),
    of({3, 4}, nil, {p = 1, dim = 2}), of({3, 4}, nil, {p = 3}), of({3, 4}, nil, {p = 1.5, dim = 1}),
    of({3, 4}, distinct, {p = math.huge, dim = 2}), of({3, 4}, distinct, {p = -math.huge}),
    {args = function(make) return make({3, 4}), {p = 0, dim = 2} end, gradgrad = false},
    of({3, 4}, nil, {p = -2, dim = 1}), of({2, 3}, nil, {p = "fro", dtype = "f64"}), of({}),
  },
  logsumexp = reductions(nil, of({})),
  amax = reductions(distinct, of({}), flat({3, 4}, int, 2)), amin = reductions(distinct, of({}), flat({3, 4}, int, 2)),
  any = reductions(nil, flat({3, 4}, int, 2), flat({3, 4}, bool, 2)),
  all = reductions(nil, flat({3, 4}, int, 2), flat({3, 4}, bool, 2)),
  count_nonzero = {of({2, 5}), of({2, 3, 4}, nil, {1, 3}), flat({3, 40}, int, 2), flat({30, 4}, bool, 1), of({})},

  max = either(distinct, flat({3, 4}, int, 2)), min = either(distinct, flat({3, 4}, int, 2)),
  median = either(distinct, flat({3, 4}, int, 2)),
  argmax = either(distinct, flat({3, 4}, int, 2), flat({3, 40}, int)),
  argmin = either(distinct, flat({3, 4}, int, 2), flat({3, 40}, int)),

  cumsum = along(nil, flat({3, 4}, int, 1), flat({3, 4}, bool, 2), of({3, 4}, nil, 1, {dtype = "f64"})),
  cumprod = {
    of({2, 5}, nil, 2), of({2, 3, 4}, positive, 2), of({4, 3, 2}, nil, 1), of({}, nil, 1), flat({3, 4}, int, 1),
    of({3, 4}, nil, 1, {dtype = "f64"}),
  },

  softmax = along(nil, of({3, 4}, nil, 1, {dtype = "f64"}), of({2, 3, 4, 5}, nil, 2)),
  log_softmax = along(nil, of({3, 4}, nil, 1, {dtype = "f64"}), of({2, 3, 4, 5}, nil, 2)),
}
