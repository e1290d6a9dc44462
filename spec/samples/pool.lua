-- Pooling.  Windows need values without ties.
local d = {distinct = true}

local function of(shape, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape, d), table.unpack(rest, 1, rest.n) end}
end

return {
  max_pool1d = {of({2, 3, 9}, 3), of({3, 8}, 2, 1), of({2, 2, 9}, 3, 2, 1, 2, true)},
  max_pool2d = {of({2, 3, 6, 7}, 2), of({3, 6, 7}, {3, 2}, {2, 1}, {1, 1}, {1, 2}),
                of({2, 2, 5, 5}, 2, {ceil_mode = true})},
  adaptive_max_pool2d = {of({2, 3, 6, 7}, {2, 3}), of({2, 5, 4}, 1)},
  avg_pool1d = {of({2, 3, 9}, 3), of({3, 8}, 3, 2, 1, {count_include_pad = false, ceil_mode = true})},
  avg_pool2d = {of({2, 3, 6, 7}, 2), of({2, 3, 6, 7}, {3, 2}, {2, 1}, {1, 1}, {count_include_pad = false}),
                of({3, 6, 7}, 3, {divisor_override = 2, ceil_mode = true})},
  adaptive_avg_pool1d = {of({2, 3, 9}, 4), of({3, 8}, 1)},
  adaptive_avg_pool2d = {of({2, 3, 6, 7}, {2, 3}), of({2, 5, 4}, 1)},
}
