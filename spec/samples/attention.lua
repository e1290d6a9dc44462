-- Attention.
local function of(q, k, v, options)
  return {args = function(make)
    local o = {}
    for name, value in pairs(options or {}) do o[name] = type(value) == "function" and value(make) or value end
    return make(q), make(k), make(v), o
  end}
end

local function mask(shape, o) return function(make) return make(shape, o) end end

return {
  scaled_dot_product_attention = {
    of({2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}), of({3, 4}, {5, 4}, {5, 2}, {scale = 0.75}),
    of({2, 4, 4}, {2, 4, 4}, {2, 4, 4}, {is_causal = true}),
    of({1, 4, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, {enable_gqa = true}),
    of({2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {mask = mask({3, 5})}),
    of({2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, {mask = mask({2, 1, 1, 5}, {bool = true})}),
    of({2, 1, 2, 3, 4}, {1, 2, 2, 3, 4}, {2, 2, 2, 3, 4}),
  },
}
