-- Samples of the ops that see a tensor in another way: core/ops/view.c, permute.c, expand.c, slice.c.

local function of(shape, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape), table.unpack(rest, 1, rest.n) end}
end

-- view takes no copy, so its operand is made dense first
local function dense(shape, size)
  return {args = function(make) return make(shape):contiguous(), size end}
end

return {
  view = {dense({2, 3, 4}, {6, 4}), dense({2, 3, 4}, {-1, 2}), dense({}, {1, 1}), dense({1}, {}), dense({0, 3}, {3, 0}),
          dense({6}, {2, 3})},
  reshape = {of({2, 3, 4}, {6, 4}), of({2, 3, 4}, {4, -1}), of({}, {1}), of({0, 2}, {2, 0, 3})},
  flatten = {of({2, 3, 4}), of({2, 3, 4}, {start_dim = 2}), of({2, 3, 4, 2}, 2, 3), of({}),
             of({2, 0, 3}, {end_dim = 2})},
  unflatten = {of({2, 6}, 2, {2, 3}), of({6, 2}, {dim = 1, sizes = {-1, 3}}), of({4}, -1, {2, 1, 2}),
               of({0}, 1, {0, 3})},
  squeeze = {of({1, 3, 1}), of({1, 3, 1}, 1), of({1, 3, 1}, {1, 2}), of({1, 3, 1}, {dim = {}}), of({}), of({1, 0})},
  unsqueeze = {of({2, 3}, 1), of({2, 3}, -1), of({2, 3}, 2), of({}, 1), of({0}, 2)},
  transpose = {of({2, 3, 4}, 1, 3), of({2, 3}, -1, -2), of({2, 3}, 1, 1), of({}, 1, -1), of({0, 3}, 1, 2)},
  t = {of({2, 3}), of({4}), of({}), of({0, 2})},
  permute = {of({2, 3, 4}, {3, 1, 2}), of({2, 3, 4}, -1, 1, 2), of({}, {}), of({2, 0}, {2, 1})},
  movedim = {of({2, 3, 4}, 1, 3), of({2, 3, 4}, {1, 2}, {-1, 1}), of({2, 3}, {source = -1, destination = 1})},
  expand = {of({3, 1}, {2, 3, 4}), of({3, 1}, {-1, 4}), of({1, 3}, 2, 3), of({}, {2}), of({1, 2}, {0, 2}),
            of({2}, {2})},
  select = {of({3, 4}, 1, 2), of({3, 4}, -1, -1), of({2, 3, 2}, {dim = 2, index = 1}), of({3}, 1, 3)},
  narrow = {of({5, 3}, 1, 2, 3), of({5, 3}, -1, -2, 2), of({4}, {dim = 1, start = 3, length = 0}), of({2, 0}, 1, 1, 1)},
  slice = {of({5, 3}, 1, 2, 4), of({7, 2}, {dim = 1, start = 2, step = 3}),
           of({2, 6}, {dim = 2, ["end"] = -2, step = 2}),
           of({4}, 1, 3, 2), of({4}), of({5}, {start = -3, stop = 100})},
  unfold = {of({7}, 1, 3, 2), of({2, 5}, 2, 2, 1), of({3, 4}, {dimension = 1, size = 2, step = 1}), of({4}, 1, 2, 2),
            of({5}, 1, 1, 3)},
}
