-- Samples of the ops that put a tensor's elements elsewhere: core/ops/cat.c, tile.c, flip.c, pad.c, tri.c.

local ampl = require "ampl"

local function of(shape, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape), table.unpack(rest, 1, rest.n) end}
end

local function list(shapes, ...)
  local rest = table.pack(...)
  return {args = function(make)
    local out = {}
    for i, shape in ipairs(shapes) do out[i] = make(shape) end
    return out, table.unpack(rest, 1, rest.n)
  end}
end

local function border(shape, pad, mode, value)
  return {args = function(make) return make(shape), pad, {mode = mode, value = value} end}
end

return {
  cat = {list {{2, 3}, {1, 3}}, list({{2, 3}, {2, 1}, {2, 2}}, 2), list({{2, 3}, {2, 0}}, {dim = -1}), list {{3}},
         list({{2, 2, 3}, {2, 1, 3}}, 2), list({{0}, {2, 3}}, 2), list({{2, 3, 2, 2}, {2, 1, 2, 2}}, 2),
         {args = function(make) return {make({2}), make({3}, {int = true})} end, note = "dtypes brought together"}},
  stack = {list {{2, 3}, {2, 3}}, list({{2, 3}, {2, 3}, {2, 3}}, 2), list({{2}, {2}}, -1),
           list {{}, {}}, list {{0, 2}}},
  tile = {of({2, 3}, {2, 1}), of({3}, 2, 2), of({2, 3}, {2}), of({2, 1, 2}, {1, 3, 2}), of({2}, {0}), of({}, {3})},
  repeat_interleave = {
    of({2, 3}, 2), of({2, 3}, 3, 1), of({2, 3}, {repeats = 2, dim = -1}), of({2}, 0),
    {args = function(make) return make({3, 2}), ampl.tensor {2, 0, 1}, {dim = 1} end},
    {args = function(make) return make({3}), ampl.tensor {1, 2, 3} end},
    {args = function(make) return make({2, 2}), ampl.tensor {2}, 2 end},
  },
  flip = {of({2, 3}, {1}), of({2, 3, 2}, 1, -1), of({3}, {dims = {1}}), of({2, 2}, {}), of({0, 2}, {1}),
          of({2, 3, 4}, {2})},
  roll = {of({5}, 2), of({2, 3}, -1, 2), of({2, 3, 2}, {1, -2}, {1, 3}), of({2, 3}, {shifts = 4}),
          of({3, 2}, {7, 1}, {1, 2}),
          of({0}, 1)},
  pad = {
    border({2, 3}, {1, 2}), border({2, 3}, {1, 0, 2, 1}, "constant", 1.5), border({2, 4}, {-1, 1}),
    border({1, 2, 4}, {2, 1}, "reflect"), border({1, 1, 3, 4}, {1, 2, 2, 0}, "reflect"),
    border({1, 2, 3}, {2, 1}, "replicate"), border({1, 1, 2, 3}, {1, 1, 1, 2}, "replicate"),
    border({1, 2, 4}, {3, 1}, "circular"), border({1, 1, 3, 4}, {2, 1, -1, 2}, "circular"), border({0, 2}, {1, 1}),
    border({3}, {2, -1}, "replicate"),
  },
  tril = {of({3, 4}), of({4, 3}, 1), of({2, 3, 3}, {diagonal = -1}), of({2, 3}, -9), of({0, 3})},
  triu = {of({3, 4}), of({4, 3}, 1), of({2, 3, 3}, {diagonal = -1}), of({2, 3}, 9), of({3, 0})},
  diag = {of({3}), of({3}, 1), of({2}, {diagonal = -2}), of({3, 4}), of({3, 4}, 2), of({4, 2}, -1), of({2, 3}, 5),
          of({0})},
}
