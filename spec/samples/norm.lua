-- Samples of normalisation: core/ops/norm.c, batch_norm.c.

local ampl = require "ampl"

local function of(shape, options, params)
  return {args = function(make)
    local o = {}
    for k, v in pairs(options or {}) do o[k] = v end
    for k, s in pairs(params or {}) do o[k] = make(s, k == "running_var" and {positive = true, grad = false} or nil) end
    return make(shape), o
  end}
end

-- weight and bias of a shape
local function both(shape) return {weight = shape, bias = shape} end

-- batch_norm and instance_norm by running statistics, which get no gradient
local function running(shape, options, affine)
  return {args = function(make)
    local c = {shape[2]}
    local o = {running_mean = make(c, {grad = false}), running_var = make(c, {positive = true, grad = false})}
    for k, v in pairs(options) do o[k] = v end
    if affine then o.weight, o.bias = make(c), make(c) end
    return make(shape), o
  end}
end

-- x in 16 bits, all else in f32, as under autocast
local function mixed(op, options)
  return {args = function(make)
    local o = {weight = make({3}, {dtype = "f32", grad = false}), bias = make({3}, {dtype = "f32", grad = false})}
    for k, v in pairs(options) do o[k] = v end
    return make({2, 3, 4, 2}), o
  end, dtypes = {"bf16", "f16"}, note = op .. " with f32 weights"}
end

return {
  layer_norm = {
    of({3, 6}, {normalized_shape = {6}}, both {6}), of({2, 3, 4, 5}, {normalized_shape = {4, 5}}, both {4, 5}),
    of({2, 3, 40}, {normalized_shape = {40}, eps = 0.1}), of({7}, {normalized_shape = {7}}, {weight = {7}}),
    of({70, 3}, {normalized_shape = {3}}, both {3}), of({4, 5}, {normalized_shape = 5}, {bias = {5}}),
  },
  rms_norm = {
    of({3, 6}, {normalized_shape = {6}}, {weight = {6}}),
    of({2, 3, 4, 5}, {normalized_shape = {4, 5}}, {weight = {4, 5}}),
    of({2, 3, 40}, {normalized_shape = {40}, eps = 0.1}), of({70, 3}, {normalized_shape = {3}}, {weight = {3}}),
  },
  group_norm = {
    of({2, 6, 5, 3}, {num_groups = 2}, both {6}), of({3, 8}, {num_groups = 2}, both {8}),
    of({2, 4, 3}, {num_groups = 4, eps = 0.1}), of({1, 6, 2, 2}, {num_groups = 1}, {weight = {6}}),
  },
  batch_norm = {
    running({3, 4, 2, 3}, {training = true}, true), running({5, 3}, {training = true, momentum = 0.3}),
    running({2, 3, 4}, {}, true), running({3, 4, 2, 3}, {eps = 0.1}), of({2, 3, 4, 2}, {training = true}, both {3}),
    of({6, 3}, {training = true}, {weight = {3}}), mixed("batch_norm", {training = true}),
  },
  instance_norm = {
    of({2, 3, 4, 2}, {}, both {3}), running({2, 3, 6}, {}, true),
    running({2, 3, 4, 2}, {use_input_stats = false}, true),
    of({2, 4, 5}), mixed("instance_norm", {}),
  },
  normalize = {
    of({3, 5}), of({2, 3, 4}, {p = 1, dim = 2}), of({2, 3, 4}, {p = 3, dim = -1}), of({2, 3}, {p = math.huge, dim = 2}),
    {args = function() return ampl.zeros(2, 3) end, grad = false, dtypes = {"f64"}, note = "a norm below eps"},
  },
  local_response_norm = {
    of({2, 7, 3, 3}, {size = 5, alpha = 0.5, beta = 0.75, k = 2}), of({1, 6, 3}, {size = 2}), of({2, 5, 4}, {size = 3}),
  },
}
