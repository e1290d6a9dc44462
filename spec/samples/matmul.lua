-- Matrix products.
local function of(...)
  local shapes = table.pack(...)
  return {args = function(make)
    local t = {}
    for i = 1, shapes.n do t[i] = make(shapes[i]) end
    return table.unpack(t, 1, shapes.n)
  end}
end

local function with(options, ...)
  local s = of(...)
  local args = s.args
  return {args = function(make)
    local t = table.pack(args(make))
    t[t.n + 1] = options
    return table.unpack(t, 1, t.n + 1)
  end}
end

return {
  matmul = {of({3, 4}, {4, 5}), of({4}, {4, 3}), of({3, 4}, {4}), of({4}, {4}), of({2, 3, 4}, {4, 5}),
            of({2, 1, 3, 4}, {3, 4, 2}),
            of({3, 4}, {2, 4, 5}), of({2, 3, 4}, {4})},
  mm = {of({3, 4}, {4, 5}), of({1, 4}, {4, 1})},
  bmm = {of({2, 3, 4}, {2, 4, 5})},
  mv = {of({3, 4}, {4})},
  dot = {of({5}, {5})},
  outer = {of({3}, {4})},
  addmm = {of({3, 5}, {3, 4}, {4, 5}), with({beta = 0.5, alpha = 2}, {5}, {3, 4}, {4, 5})},
  baddbmm = {of({2, 3, 5}, {2, 3, 4}, {2, 4, 5}), with({beta = 0.5, alpha = -1}, {3, 5}, {2, 3, 4}, {2, 4, 5})},
  linear = {of({3, 4}, {5, 4}, {5}), of({2, 3, 4}, {5, 4}), of({4}, {5, 4}, {5}), of({3, 4}, {4})},
}
