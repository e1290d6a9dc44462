-- Convolutions.
local function of(x, w, options, bias)
  return {args = function(make)
    local o = {}
    for k, v in pairs(options or {}) do o[k] = v end
    if bias then o.bias = make({bias}) end
    return make(x), make(w), o
  end}
end

return {
  conv1d = {of({2, 4, 9}, {6, 2, 3}, {stride = 2, padding = 1, groups = 2}, 6),
            of({3, 8}, {2, 3, 3}, {padding = "same"}),
            of({1, 2, 9}, {3, 2, 2}, {dilation = 3})},
  conv2d = {of({2, 3, 6, 5}, {4, 3, 3, 3}, {padding = 1}, 4),
            of({3, 7, 6}, {2, 3, 3, 2}, {stride = {2, 1}, padding = {1, 0}, dilation = {1, 2}}),
            of({2, 4, 5, 5}, {4, 1, 3, 3}, {groups = 4, padding = "same"}),
            of({1, 2, 4, 4}, {3, 2, 1, 1}, {stride = 2}, 3)},
  conv3d = {of({1, 2, 4, 4, 5}, {3, 2, 2, 2, 2}, {}, 3),
            of({2, 4, 3, 4}, {2, 1, 2, 2, 2}, {stride = {2, 1, 1}, padding = 1, groups = 2}),
            of({1, 2, 3, 2, 3}, {2, 2, 2, 1, 3}, {padding = "same", dilation = {2, 1, 1}})},
  conv_transpose1d = {of({2, 4, 5}, {4, 3, 3}, {stride = 2, padding = 1, output_padding = 1}, 3),
            of({2, 6}, {2, 3, 2}, {dilation = 2})},
  conv_transpose2d = {of({2, 4, 3, 4}, {4, 2, 3, 3}, {stride = 2, padding = 1, groups = 2}, 4),
            of({3, 4, 3}, {3, 2, 2, 2}, {stride = {1, 2}})},
}
