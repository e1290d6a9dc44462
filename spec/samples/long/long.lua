-- Samples whose operands grow together with the numbers that they are called with: args(make, n) for any length n.
-- What grows by itself is found in the other samples (spec/support/grown.lua).

local ampl = require "ampl"

local function normed(f) return {args = f} end

-- n positions from 1 to m, in no order
local function positions(n, m) return (ampl.arange(n, {dtype = "i64"}) * 7919) % m + 1 end

return {
  layer_norm = {
    normed(function(make, n) return make {3, n}, {normalized_shape = {n}, weight = make {n}, bias = make {n}} end),
    normed(function(make, n) return make {2, n, 3}, {normalized_shape = {n, 3}, weight = make {n, 3}} end),
  },
  rms_norm = {
    normed(function(make, n) return make {3, n}, {normalized_shape = {n}, weight = make {n}} end),
  },
  unflatten = {{args = function(make, n) return make {2, 3 * n}, 2, {n, 3} end}},
  view = {{args = function(make, n) return make {3, n}:contiguous(), {n, 3} end}},
  index_add = {
    {args = function(make, n) return make {5, 3}, 1, positions(n, 5), make {n, 3} end},
    {args = function(make, n) return make {3, n}, 2, positions(n, n), make {3, n} end},
  },
  scatter_add = {{args = function(make, n) return make {3, 4}, 2, make({3, n}, {labels = 4}), make {3, n} end}},
  index_put = {
    {args = function(make, n) return make {n, 3}, {positions(n, n)}, make {n, 3}, {accumulate = true} end},
    {args = function(make, n) return make {4, n}, {false, positions(n, n)}, make {4, n} end},
  },
  index = {{args = function(make, n) return make {n, 3}, {positions(n, n), make({n}, {labels = 3})} end}},
  fold = {{args = function(make, n) return make {1, 4, n}, {2, n + 1}, 2 end}},
  conv1d = {{args = function(make, n) return make {2, 4, n}, make {3, 4, 3}, {bias = make {3}, padding = 1} end}},
  conv_transpose1d = {{args = function(make, n) return make {1, 4, n}, make {4, 3, 3}, {bias = make {3}} end}},
}
