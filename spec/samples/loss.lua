-- Samples of losses: core/ops/loss.c, cross_entropy.c, distance_loss.c.

local reductions = {"none", "mean", "sum"}

-- A loss of a prediction and a target, under each reduction; o, p: how they are drawn.
local function pairs_of(o, p, options)
  local out = {}
  for i, reduction in ipairs(reductions) do
    out[i] = {args = function(make)
      local all = {reduction = reduction}
      for k, v in pairs(options or {}) do all[k] = v end
      local shape = i == 1 and {3, 40} or i == 2 and {2, 3, 4} or {5}
      return make(shape, o), make(shape, p), all
    end}
  end
  return out
end

local function join(...)
  local out = {}
  for _, list in ipairs {...} do table.move(list, 1, #list, #out + 1, out) end
  return out
end

local low, high = {lo = 0.125, hi = 0.875}, {lo = 2.25, hi = 4}

-- A prediction with classes in dimension 2 (1 of a vector), and labels or probabilities
local function labelled(shape, options, weighted)
  return {args = function(make)
    local o, rows = {}, {}
    for k, v in pairs(options or {}) do o[k] = v end
    for d, n in ipairs(shape) do
      if d ~= (#shape > 1 and 2 or 1) then rows[#rows + 1] = n end
    end
    local classes = shape[#shape > 1 and 2 or 1]
    if weighted then o.weight = make({classes}, {positive = true, grad = false}) end
    return make(shape), make(rows, {labels = classes}), o
  end}
end

local function probable(shape, options, weighted)
  return {args = function(make)
    local o = {}
    for k, v in pairs(options or {}) do o[k] = v end
    if weighted then o.weight = make({shape[#shape > 1 and 2 or 1]}, {positive = true, grad = false}) end
    return make(shape), make(shape, {positive = true}), o
  end}
end

local by_labels = {
  labelled {6, 5}, labelled({6, 5}, {reduction = "none"}, true), labelled({6, 5}, {reduction = "sum"}, true),
  labelled({2, 4, 3, 2}, {ignore_index = 2}, true), labelled({2, 4, 5}, {reduction = "none"}), labelled {7},
  labelled({3, 70}, nil, true), labelled({2, 3, 9}, {ignore_index = 1}),
}

local function signs(make, shape) return make(shape, {int = true, lo = 0, hi = 1}):mul(2):sub(1) end
local function with_signs(options)
  return {args = function(make)
    local x = make({3, 5}, {lo = -0.875, hi = 0.875})
    return x, signs(make, {3, 5}):to(x.dtype), options
  end}
end

local function three(shape, options)
  return {args = function(make) return make(shape), make(shape), make(shape), options end}
end

return {
  mse_loss = join(pairs_of(), {{args = function(make) return make({4}), 0.75 end, note = "a number as target"}}),
  l1_loss = pairs_of(nil, high),
  smooth_l1_loss = join(pairs_of(nil, high), pairs_of(nil, nil, {beta = 3.3}),
    pairs_of(nil, high, {beta = 0})),
  huber_loss = join(pairs_of(nil, high, {delta = 0.2}), pairs_of(nil, nil, {delta = 5})),
  kl_div = join(pairs_of(nil, {positive = true}), pairs_of(nil, nil, {log_target = true}),
    {{args = function(make) return make({3, 4}), make({3, 4}, {positive = true}), {reduction = "batchmean"} end}}),
  poisson_nll_loss = join(pairs_of(nil, {positive = true}), pairs_of({positive = true}, high, {log_input = false}),
    pairs_of(nil, high, {full = true})),
  soft_margin_loss = {with_signs {}, with_signs {reduction = "none"}, with_signs {reduction = "sum"}},
  hinge_embedding_loss = {with_signs {}, with_signs {reduction = "none", margin = 0.9}, with_signs {reduction = "sum"}},
  binary_cross_entropy = join(pairs_of(low, low), {
    {args = function(make)
      return make({3, 4}, low), make({3, 4}, low), {weight = make({4}, {positive = true, grad = false})}
    end},
  }),
  binary_cross_entropy_with_logits = join(pairs_of(nil, low), {
    {args = function(make)
      local o = {weight = make({3, 1}, {positive = true, grad = false}), pos_weight = make({4}, {positive = true})}
      return make({3, 4}), make({3, 4}, low), o
    end},
    {args = function(make)
      return make({3, 4}), make({3, 4}, low), {pos_weight = make({4}, {positive = true}), reduction = "none"}
    end},
  }),
  gaussian_nll_loss = {
    {args = function(make) return make({3, 4}), make({3, 4}), make({3, 4}, {positive = true}) end},
    {args = function(make)
      return make({3, 4}), make({3, 1}), make({1, 4}, {positive = true}), {full = true, reduction = "none"}
    end},
    {args = function(make) return make({3, 4}), make({1, 4}), make({3}, {positive = true}) end},
  },
  margin_ranking_loss = {
    three({3, 5}, {margin = 0.3}), three({3, 5}, {reduction = "none"}), three({6}, {reduction = "sum"}),
  },

  cross_entropy = join(by_labels, {
    labelled({6, 5}, {label_smoothing = 0.1}, true), labelled({2, 4, 3, 2}, {label_smoothing = 0.2, ignore_index = 3}),
    labelled({3, 70}, {label_smoothing = 0.1, reduction = "sum"}), labelled({2, 4, 5}, {label_smoothing = 0.3}, true),
    probable {3, 4}, probable({2, 3, 4}, {label_smoothing = 0.1}, true), probable({3, 4}, {reduction = "none"}),
    probable({5}, {reduction = "sum"}),
  }),
  nll_loss = by_labels,

  cosine_similarity = {
    {args = function(make) return make({3, 5}), make({3, 5}) end},
    {args = function(make) return make({2, 3}), make({2, 1, 3}), {dim = -1} end},
    {args = function(make) return make({2, 3, 4}), make({2, 3, 4}), {dim = 2} end},
  },
  cosine_embedding_loss = {
    {args = function(make) return make({4, 5}), make({4, 5}), signs(make, {4}), {margin = -0.9} end},
    {args = function(make)
      return make({4, 5}), make({4, 5}), signs(make, {4}), {reduction = "none", margin = -0.9}
    end},
  },
  triplet_margin_loss = {
    three({4, 5}, {margin = 6}), three({4, 5}, {margin = 6, swap = true, reduction = "none"}),
    three({4, 5}, {margin = 9, p = 3}),
  },
  multi_margin_loss = {
    {args = function(make) return make({4, 5}), make({4}, {labels = 5}), {margin = 5} end},
    {args = function(make)
      return make({4, 5}), make({4}, {labels = 5}),
             {p = 2, margin = 5, weight = make({5}, {positive = true, grad = false}), reduction = "none"}
    end},
    {args = function(make) return make({5}), make({}, {labels = 5}), {margin = 5} end},
  },
}
