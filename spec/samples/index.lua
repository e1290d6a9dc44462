-- Samples of the ops that read and write by index tensors and masks: core/ops/index.c, index_put.c, mask.c,
-- embedding.c, count.c, multinomial.c.  Where two values for one place would leave the gradient to chance, positions
-- are written out.

local ampl = require "ampl"

local t = ampl.tensor

local function by_labels(shape, n, index_shape, opts)
  return {args = function(make) return make(shape), make(index_shape, {labels = n}), opts end}
end

local function scatter(shape, dim, index, src)
  return {args = function(make) return make(shape), dim, t(index), type(src) == "table" and make(src) or src end}
end

local function put(shape, indices, values, opts)
  return {args = function(make)
    local list = {}
    for i, v in ipairs(indices) do list[i] = v and t(v) end
    return make(shape), list, type(values) == "table" and make(values) or values, opts
  end}
end

local function read(shape, indices)
  return {args = function(make)
    local list = {}
    for i, v in ipairs(indices) do list[i] = v and t(v) end
    return make(shape), list
  end}
end

local function masked(shape, mask_shape)
  return {args = function(make) return make(shape), make(mask_shape, {bool = true}) end}
end

local function ints(shape, n, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape, {labels = n}), table.unpack(rest, 1, rest.n) end}
end

return {
  index_select = {by_labels({3, 4}, 3, {5}, {dim = 1}), by_labels({3, 4}, 4, {2}, {dim = -1}),
                  by_labels({2, 3, 2}, 3, {4}, {dim = 2}), by_labels({3}, 3, {0}, {dim = 1}),
                  {args = function(make) return make({3, 2}), 1, t {-1, 1, -3} end, note = "from the end"},
                  {args = function(make) return make({3, 2}), 1, make({4}, {labels = 3, dtype = "i32"}) end}},
  gather = {by_labels({3, 4}, 3, {2, 4}, {dim = 1}), by_labels({3, 4}, 4, {3, 6}, {dim = 2}),
            by_labels({2, 3, 4}, 3, {2, 5, 3}, {dim = 2}), by_labels({4}, 4, {7}, {dim = 1}),
            by_labels({3, 2}, 3, {0, 2}, {dim = 1}), by_labels({}, 1, {}, {dim = 1})},
  take_along_dim = {by_labels({3, 4}, 3, {2, 4}, {dim = 1}), by_labels({3, 4}, 12, {5}),
                    by_labels({3, 1}, 3, {2, 4}, {dim = 1}),
                    by_labels({3, 4}, 4, {1, 2}, {dim = 2})},
  scatter = {scatter({3, 4}, 1, {{1, 2, 3, 1}, {2, 3, 1, 3}}, {2, 4}),
             scatter({3, 4}, 2, {{4, 1}, {2, 3}, {1, 4}}, {3, 2}),
             scatter({3, 4}, 2, {{4, 1}, {2, 3}}, {3, 3}), scatter({3, 4}, 1, {{3, -1, 1, 1}}, 2.5),
             scatter({2, 3, 2}, 2, {{{3, 1}, {1, 2}}, {{2, 2}, {1, 3}}}, {2, 2, 2}), scatter({4}, 1, {3, 1}, {2})},
  scatter_add = {scatter({3, 4}, 1, {{1, 2, 3, 1}, {1, 3, 1, 3}}, {2, 4}),
                 scatter({3, 4}, 2, {{4, 4, 4}, {2, 3, 2}}, {3, 3}),
                 scatter({2, 3, 2}, 2, {{{3, 1}, {3, 1}}, {{2, 2}, {2, 3}}}, {2, 2, 2}),
                 scatter({4}, 1, {3, 3, 3, 1}, {4})},
  index_add = {
    {args = function(make) return make({3, 2}), 1, t {3, 1, 3}, make({3, 2}) end},
    {args = function(make) return make({2, 4}), 2, t {4, 4}, make({2, 2}), {alpha = -0.5} end},
    {args = function(make) return make({2, 3, 2}), t {1, -1, 1, 2}, make({2, 4, 2}), {dim = 2} end},
    {args = function(make) return make({3}), 1, t {2}, make({1}) end},
  },
  index = {read({3, 4}, {{3, 1, 3}}), read({3, 4}, {{3, 1}, {2, 4}}), read({3, 4}, {false, {4, 1, 1}}),
           read({2, 3, 4}, {{2, 1, 2}, false, {4, 1, 2}}), read({2, 3, 4}, {{{1}, {2}}, {3, 1}}),
           read({3, 4}, {{true, false, true}}),
           read({2, 3, 2}, {{{true, false, true}, {false, true, false}}}),
           read({2, 3, 2}, {false, {true, false, true}, {2, 1}}),
           read({3, 2}, {{{1, 2}, {3, 1}}}), read({4}, {{false, false, false, false}})},
  index_put = {
    put({3, 4}, {{3, 1}}, {2, 4}), put({3, 4}, {{3, 1}, {2, 4}}, {2}), put({3, 4}, {{3, 1}, {2, 4}}, 1.5),
    put({3, 4}, {{3, 1, 3}}, {3, 4}, {accumulate = true}), put({3, 4}, {false, {4, 1}}, {3, 1}),
    put({2, 3, 4}, {{2, 1, 2}, false, {4, 1, 4}}, {3, 3}, {accumulate = true}), put({3, 4}, {{true, false, true}}, {4}),
    put({2, 3}, {{{true, false, true}, {false, true, false}}}, {3}), put({3, 4}, {{3, 1}}, {}),
  },
  masked_select = {masked({3, 4}, {3, 4}), masked({3, 4}, {4}), masked({3, 1}, {3, 4}), masked({4}, {}),
                   masked({0, 2}, {2})},
  nonzero = {
    {args = function(make) return make({3, 4}, {int = true, lo = -1, hi = 1}) end},
    {args = function(make) return make({3, 4}, {bool = true}) end},
    {args = function(make) return make({2, 2, 2}):round() end}, {args = function(make) return make({}) end},
    {args = function(make) return make({0, 2}) end},
  },
  embedding = {
    {args = function(make) return make({2, 3}, {labels = 5}), make({5, 4}) end},
    {args = function(make) return t {3, 1, 1, -1}, make({3, 2}), {padding_idx = 2} end},
    {args = function(make) return t {3, 1, 2, 3}, make({4, 2}), {padding_idx = -1} end},
    {args = function(make) return t {3, 1, 2}, make({4, 2}), {scale_grad_by_freq = true} end},
    {args = function(make) return t {3, 1, 1, 3, 1}, make({4, 2}), {scale_grad_by_freq = true, padding_idx = 3} end,
     grad = false, note = "not the plain derivative"},
    {args = function(make) return make({}, {labels = 3}), make({3, 2}) end},
    {args = function(make) return make({0}, {labels = 3}), make({3, 2}) end},
  },
  one_hot = {ints({2, 3}, 4, 4), ints({5}, 3), ints({}, 3, {num_classes = 5}), ints({0}, 3, 2)},
  bincount = {
    ints({7}, 5), ints({7}, 3, {minlength = 6}), ints({0}, 3),
    {args = function(make) return make({6}, {labels = 4}), make({6}) end, grad = false},
  },
  histc = {
    {args = function(make) return make({3, 5}), {bins = 4, min = -2, max = 2} end},
    {args = function(make) return make({20}), 5 end},
    {args = function(make) return make({4}), {bins = 3, min = 0, max = 1} end},
  },
  multinomial = {
    {args = function(make) return make({5}, {positive = true}), 3 end},
    {args = function(make) return make({2, 4}, {positive = true}), 7, true end},
    {args = function() return t {0, 0, 1.0, 0}, 4, {replacement = true} end},
  },
}
