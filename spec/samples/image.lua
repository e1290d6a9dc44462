-- Samples of the ops on images: core/ops/im2col.c, pixel_shuffle.c, interpolate.c, grid_sample.c.

local function of(shape, ...)
  local rest = table.pack(...)
  return {args = function(make) return make(shape), table.unpack(rest, 1, rest.n) end}
end

local function sampled(mode, padding_mode, align_corners, grad)
  return {args = function(make)
    return make({2, 2, 4, 5}), make({2, 3, 2, 2}, {lo = -1.5, hi = 1.5}),
           {mode = mode, padding_mode = padding_mode, align_corners = align_corners}
  end, gradgrad = false, grad = grad, note = "no gradient of the gradient, as in PyTorch"}
end

return {
  im2col = {of({1, 2, 4, 5}, 2), of({2, 1, 5, 4}, {2, 3}, {padding = 1, stride = {2, 1}}),
            of({2, 4, 4}, {2, 2}, {1, 2}, 0, 1),
            of({1, 1, 3, 3}, 3, {padding = 2, dilation = 2})},
  fold = {of({1, 8, 12}, {4, 5}, 2), of({6, 12}, {3, 5}, {2, 3}, {stride = {1, 2}, padding = {1, 1}}),
          of({2, 4, 4}, 4, 2, {stride = 2}), of({1, 9, 1}, 5, 3, 2)},
  pixel_shuffle = {of({1, 4, 2, 3}, 2), of({9, 1, 2}, 3), of({2, 1, 8, 1, 2}, 2), of({1, 1, 2, 2}, 1)},
  resample = {
    of({1, 2, 3, 4}, {5, 3}), of({1, 2, 3, 4}, {6, 8}, {mode = "linear"}),
    of({1, 2, 3, 4}, {5, 2}, {mode = "linear", align_corners = true}), of({2, 1, 4, 3}, {6, 5}, {mode = "cubic"}),
    of({1, 1, 4, 3}, {3, 5}, {mode = "cubic", align_corners = true}),
    of({1, 2, 5}, {8}, {mode = "linear", scale_0 = 1.7}),
    of({1, 1, 2, 3, 2}, {3, 3, 4}, {mode = "linear"}), of({1, 2, 4}, {7}), of({1, 1, 3, 3}, {1, 1}, {mode = "linear"}),
  },
  grid_sample = {
    sampled("bilinear", "zeros", false), sampled("bilinear", "border", true), sampled("bilinear", "reflection", false),
    sampled("bicubic", "zeros", true), sampled("bicubic", "border", false), sampled("bicubic", "reflection", true),
    sampled("nearest", "zeros", false),
  },
}
