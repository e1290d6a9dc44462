-- What autocast does with each op: the categories, beside PyTorch's lists, and ops on operands of different dtypes in a
-- region, out of place and in place, with gradients.

local ampl = require "ampl"
local samples = require "spec.support.samples"
local tensors = require "spec.support.tensors"
local amp, F = ampl.amp, ampl.nn.functional

-- PyTorch 2.15's lists for CUDA (aten/src/ATen/autocast_mode.h), for the ops that are here.  One list serves all
-- devices; where PyTorch's CPU list differs, CUDA's counts.
local LISTS = {
  LOW = [[addmm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d linear matmul mm mv prelu
    scaled_dot_product_attention]],
  F32 = [[acos asin cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh softplus tan
    group_norm layer_norm rms_norm cosine_similarity logsumexp
    binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss
    margin_ranking_loss mse_loss multi_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss
    resample]] ..                       -- upsample_*
    -- there written with listed ops: pow, log, norm
    " square gaussian_nll_loss normalize local_response_norm",
  F32_OUT = [[cumprod cumsum log_softmax norm prod softmax sum]] ..
    " cross_entropy",                   -- log_softmax and nll_loss in one
  WIDEST = [[addcdiv addcmul atan2 dot grid_sample index_put scatter_add]] ..
    " cat stack" ..                     -- of the CPU's list; elsewhere they promote by themselves, as here outside
    " index_add scatter",               -- unlisted there, where different dtypes are an error
  REFUSE = [[binary_cross_entropy]],
}

describe("the categories", function()
  it("are PyTorch's", function()
    local want = {}
    for category, list in pairs(LISTS) do
      for name in list:gmatch("%S+") do
        assert.is_nil(want[name], name)
        want[name] = category
      end
    end
    for _, op in ipairs(ampl.ops()) do
      local name = type(op) == "table" and op.name or op
      local category, why = amp.policy(name)
      -- Losses that are not named belong among the exact ones.
      if not want[name] then assert.is_nil(name:match("_loss$"), name) end
      assert.equal(want[name] or "KEEP", category, name)
      assert.is_true(#why > 0)
      want[name] = nil
    end
    assert.is_nil(next(want))
  end)
end)

-- ------------------------------------------------------------------------------------------------ mixed operands ---

local all = samples.load()
local names = {}
for name in pairs(all) do names[#names + 1] = name end
table.sort(names)
local light = os.getenv("AMPL_SPEC_SANITIZE") ~= nil

-- A make whose floats are of `low`, but for the k-th (or the other way round); how many floats there were stands in
-- count.n.
local function mixed(index, run, k, low, other)
  local make, made = samples.maker(index, {dtype = run.dtype, grad = false})
  local count = {n = 0, x = {}}
  return function(shape, o)
    local t = make(shape, o)
    local floats = tensors.floats[t.dtype] ~= nil
    if floats and t.dtype == run.dtype then
      count.n = count.n + 1
      if run.dtype == "f32" and (count.n == k) ~= other then t = t:to(low) end
      if run.grad and made.leaf[#made] then t:requires_grad_(true) end
      count.x[#count.x + 1] = t
    end
    return t
  end, count
end

local function call(name, sample, index, run, k, low, other)
  local make, count = mixed(index, run, k, low, other)
  ampl.manual_seed(7)
  local args = table.pack(sample.args(make))
  local f
  if run.inplace then f = tensors.is(args[1]) and args[1][name .. "_"]
  else f = samples.callable(name, args[1]) end
  if not f then return nil, count end
  local results, out = table.pack(f(table.unpack(args, 1, args.n))), {}
  for i = 1, results.n do
    local list = type(results[i]) == "table" and results[i] or {results[i]}
    for _, y in ipairs(list) do
      if tensors.is(y) then out[#out + 1] = y end
    end
  end
  return out, count, args[1]
end

local function close(name, got, want)
  assert.equal(#want, #got)
  for i = 1, #want do
    if tensors.floats[want[i].dtype] then
      local why = tensors.compare(got[i], want[i], nil, 2.0 ^ -5, 0.5)
      assert.is_nil(why, why and name .. ": " .. why)
    end
  end
end

local function want_dtype(category, y, xs)
  if category == "LOW" then return "f16" end
  if category == "F32" or category == "F32_OUT" then return "f32" end
  if category ~= "WIDEST" then return y.dtype end
  for _, x in ipairs(xs) do
    if x.dtype ~= "f16" then return "f32" end
  end
  return "f16"
end

local function gradients_arrive(name, out, xs)
  local loss
  for _, y in ipairs(out) do
    if tensors.floats[y.dtype] and y.requires_grad then
      local part = y:to("f32"):sum()
      loss = loss and loss + part or part
    end
  end
  if not loss then return end
  loss:backward()
  for i, x in ipairs(xs) do
    if x.grad then assert.equal(x.dtype, x.grad.dtype, ("%s: operand %d"):format(name, i)) end
  end
end

local function check(name, sample, index)
  local category = amp.policy(name)
  local random = ampl.ops(name).random
  local _, count = call(name, sample, index, {dtype = "f64"}, 1, "f16", false)
  if count.n < 2 then return end
  local want = call(name, sample, index, {dtype = "f64"})
  for k = 1, count.n do
    for _, v in ipairs {{"f16", false}, {"f16", true}, {"bf16", false}} do
      local what = ("%s, sample %d, operand %d %s %s"):format(name, index, k, v[2] and "not" or "only", v[1])
      amp.autocast({dtype = "f16"}, function()
        local grad = sample.grad ~= false and ampl.ops(name).differentiable
        local out, c = call(name, sample, index, {dtype = "f32", grad = grad}, k, v[1], v[2])
        if not random then close(what, out, want) end
        if tensors.floats[out[1].dtype] then assert.equal(want_dtype(category, out[1], c.x), out[1].dtype, what) end
        gradients_arrive(what, out, c.x)
      end)
    end
  end
end

local function check_inplace(name, sample, index)
  local _, count = call(name, sample, index, {dtype = "f64"}, 1, "f16", false)
  if count.n < 2 then return end
  local ok, want = pcall(call, name, sample, index, {dtype = "f64", inplace = true})
  if not ok or not want then return end                 -- a result of another shape
  for k = 1, count.n do
    for _, v in ipairs {{"f16", false}, {"f16", true}, {"bf16", false}} do
      local what = ("%s_, sample %d, operand %d %s %s"):format(name, index, k, v[2] and "not" or "only", v[1])
      amp.autocast({dtype = "f16"}, function()
        local out, c, self = call(name, sample, index, {dtype = "f32", inplace = true}, k, v[1], v[2])
        assert.equal(c.x[1].dtype, self.dtype, what)
        close(what, out, want)
      end)
    end
  end
end

describe("in a region, operands of different dtypes", function()
  for _, name in ipairs(names) do
    local record = ampl.ops(name)
    if record and amp.policy(name) ~= "REFUSE" then
      it("suit " .. name, function()
        for i, sample in ipairs(all[name]) do
          if i <= (light and 1 or 4) and sample.inplace ~= "only" then check(name, sample, i) end
          if i <= (light and 1 or 4) and record.inplace then check_inplace(name, sample, i) end
        end
      end)
    end
  end

  it("go up to f64 where one is f64", function()
    local i, wide = ampl.tensor {2}, ampl.zeros(3, {dtype = "f64"})
    amp.autocast(function()
      for _, dtype in ipairs {"f32", "f16", "bf16"} do
        local s = ampl.ones(1, {dtype = dtype})
        assert.equal("f64", wide:index_add(1, i, s).dtype)
        assert.equal("f64", wide:scatter_add(1, i, s).dtype)
        assert.equal("f64", ampl.zeros(3, {dtype = dtype}):scatter(1, i, ampl.ones(1, {dtype = "f64"})).dtype)
        assert.equal("f64", ampl.cat({s, wide}).dtype)
      end
    end)
  end)

  it("keep what promotion keeps: numbers, masks, labels", function()
    local i, x = ampl.tensor {2}, ampl.ones(3, {dtype = "f16"})
    amp.autocast({dtype = "f16"}, function()
      assert.equal("f16", x:scatter(1, i, 2.5).dtype)
      assert.equal("f16", x:gather(1, i).dtype)
      assert.equal("f16", x:masked_fill(x:gt(0), 1e5).dtype)
      assert.equal("i64", ampl.zeros(3, {dtype = "i64"}):index_add(1, i, ampl.tensor {1}).dtype)
    end)
  end)
end)

describe("exact in a region", function()
  it("are squares, norms and logarithms of what f16 holds", function()
    amp.autocast({dtype = "f16"}, function()
      local x = ampl.tensor({300.0, 400.0}, {dtype = "f16"})
      assert.same({90000, 160000}, x:square():totable())
      local unit = F.normalize(x:view(1, 2))
      assert.equal("f32", unit.dtype)
      assert.is_true(math.abs(unit[1][1]:item() - 0.6) < 1e-6)
      local tiny = ampl.tensor({1e-4}, {dtype = "f16"})
      local loss = F.gaussian_nll_loss(x[{{1, 1}}], ampl.zeros(1, {dtype = "f16"}), tiny)
      assert.equal("f32", loss.dtype)
      local var = tiny:item()
      assert.is_true(math.abs(loss:item() / (0.5 * (math.log(var) + 90000 / var)) - 1) < 1e-5)
    end)
  end)

  it("is interpolation, in every mode", function()
    local x = ampl.arange(1, 5):to("f16"):view(1, 1, 2, 2)
    amp.autocast({dtype = "f16"}, function()
      for _, mode in ipairs {"nearest", "bilinear", "bicubic"} do
        local y = F.interpolate(x, {scale_factor = 3, mode = mode})
        assert.equal("f32", y.dtype)
        local want = amp.autocast({enabled = false}, function()
          return F.interpolate(x:float(), {scale_factor = 3, mode = mode})
        end)
        assert.equal(0, (y - want):abs():max():item())
      end
    end)
  end)
end)
