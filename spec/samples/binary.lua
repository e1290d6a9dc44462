-- Samples of the element-wise ops of two and three operands (kernels/binary.def), and of choosing by masks and bounds.

local function two(a, b, o, p)
  return {args = function(make) return make(a, o), make(b, p or o) end}
end

local function number(o, v)
  return {args = function(make) return make({2, 19}, o), v end}
end

-- The same shapes, broadcasting both ways, a scalar tensor, and a plain number.
local function pair(o, p, ...)
  return {
    two({2, 19}, {2, 19}, o, p), two({3, 1, 4}, {5, 1}, o, p), two({2, 3}, {}, o, p), number(o, 1.75), ...,
  }
end

local function integers(lo)
  return {
    args = function(make) return make({7}, {int = true, lo = lo, hi = 9}), make({7}, {int = true, lo = lo, hi = 5}) end,
    grad = false,
  }
end

local function optioned(options)
  return {args = function(make) return make({3, 4}), make({4}), options end}
end

local distinct, positive, apart = {distinct = true}, {positive = true}, {lo = 2.25, hi = 4}
local function of_numbers(v) return {args = function(make) return v, make({3, 4}, positive) end} end

local function three(a, b, c, o)
  return {args = function(make) return make(a), make(b), make(c, o) end}
end

return {
  add = pair(nil, nil, optioned {alpha = 2.5}, integers(-5), of_numbers(2)),
  sub = pair(nil, nil, optioned {alpha = 0.5}, integers(-5), of_numbers(2)),
  mul = pair(nil, nil, integers(-5), of_numbers(2)),
  div = pair(nil, positive, integers(1), of_numbers(2),
    {args = function(make) return make({3, 5}), make({5}, positive), {rounding_mode = "floor"} end},
    {
      args = function(make)
        return make({9}, {int = true}), make({9}, {int = true, lo = 1}), {rounding_mode = "trunc"}
      end,
      grad = false,
    }),
  floor_div = {
    {
      args = function(make) return make({3, 5}, {grad = false}), make({5}, {positive = true, grad = false}) end,
      grad = false,
    },
    integers(1), {args = function(make) return make({4, 3}, {grad = false}), 0.75 end, grad = false},
  },
  remainder = pair({lo = 0.25, hi = 1}, {lo = 1.25, hi = 2}, integers(1)),
  pow = pair(positive, nil, of_numbers(2), number(nil, 2), number(nil, 3), number(positive, 0.5), number(positive, -1),
    integers(0)),
  atan2 = pair(),
  minimum = pair(nil, {lo = 2.25, hi = 4}, integers(-5)), maximum = pair(nil, apart, integers(-5)),
  eq = pair(nil, nil, integers(0)), ne = pair(nil, nil, integers(0)), lt = pair(distinct, nil, integers(0)),
  le = pair(distinct, nil, integers(0)), gt = pair(distinct, nil, integers(0)), ge = pair(distinct, nil, integers(0)),
  logical_and = pair(nil, nil, integers(0)), logical_or = pair(nil, nil, integers(0)),
  logical_xor = pair(nil, nil, integers(0)),

  lerp = {
    three({3, 4}, {3, 4}, {3, 4}), three({3, 4}, {4}, {}), three({2, 5}, {2, 5}, {1, 5}, {lo = 0.75, hi = 2}),
    {args = function(make) return make({3, 4}), make({3, 4}), 0.25 end},
  },
  addcmul = {
    three({3, 4}, {3, 4}, {3, 4}), three({3, 4}, {4}, {3, 1}),
    {args = function(make) return make({3, 4}), make({3, 4}), make({4}), {value = -0.5} end},
  },
  addcdiv = {
    three({3, 4}, {3, 4}, {3, 4}, positive), three({3, 4}, {4}, {3, 1}, positive),
    {args = function(make) return make({3, 4}), make({3, 4}), make({4}, positive), {value = -0.5} end},
  },

  where = {
    {args = function(make) return make({3, 4}, {bool = true}), make({3, 4}), make({3, 4}) end},
    {args = function(make) return make({3, 1}, {bool = true}), make({4}), make({2, 1, 1}) end},
    {args = function(make) return make({3, 4}, {bool = true}), make({3, 4}), 0.5 end},
  },
  masked_fill = {
    {args = function(make) return make({3, 4}), make({3, 4}, {bool = true}), -1.5 end},
    {args = function(make) return make({2, 3, 4}), make({3, 1}, {bool = true}), make({}) end},
  },
  clamp = {
    {args = function(make) return make({4, 5}), -0.75, 1 end},
    {args = function(make) return make({4, 5}), {max = 0.5} end},
    {args = function(make) return make({4, 5}), {min = -0.5} end},
    {
      args = function(make)
        return make({4, 5}), make({5}, {lo = -1.5, hi = -0.5}), make({4, 1}, {lo = 0.75, hi = 1.5})
      end,
    },
    {args = function(make) return make({9}, {int = true}), -2, 3 end, grad = false},
  },
}
