-- Samples of the ops that put values in order: core/ops/sort.c.

local function of(shape, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape, {distinct = true}), table.unpack(rest, 1, rest.n) end}
end

local function ints(shape, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape, {int = true, lo = -3, hi = 3}), table.unpack(rest, 1, rest.n) end,
          grad = false}
end

local function values(shape, ...)
  local sample = of(shape, ...)
  sample.grad = false
  return sample
end

return {
  sort = {of({3, 4}), of({3, 4}, 1, true), of({2, 3, 2}, {dim = 2, descending = true}), of({}), of({0, 3}),
          ints({2, 9}),
          of({60}, {descending = true}), ints({70}, {stable = true})},
  argsort = {of({3, 4}), of({3, 4}, 1, true), ints({2, 9}, {stable = true}), of({})},
  topk = {of({3, 5}, 2), of({5, 3}, 2, 1), of({2, 6}, {k = 3, largest = false}), of({4}, 4), of({3}, 0),
          ints({12}, 5), of({}, 1),
          of({90}, 3), of({90}, {k = 60, largest = false})},
  unique = {values({3, 4}), ints({3, 4}, {return_inverse = true, return_counts = true}),
            ints({9}, {return_counts = true}),
            ints({5, 2}, {dim = 1, return_inverse = true}), ints({2, 6}, {dim = -1, return_counts = true}),
            values({0})},
}
