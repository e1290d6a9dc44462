-- Modules: fields, names, state dicts, modes, hooks; layers' arguments.

local ampl = require "ampl"
local nn = ampl.nn

local function keys(t)
  local out = {}
  for k in pairs(t) do out[#out + 1] = k end
  table.sort(out)
  return out
end

local function names(iterator)
  local out = {}
  for name in iterator do out[#out + 1] = name end
  return out
end

-- The error that fn raises.
local function failure(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  return e
end

local Net = nn.Module:extend("Net")

function Net:init(n)
  self.fc1 = nn.Linear(n, 3)
  self.scale = ampl.ones({1}, {requires_grad = true})
  self.fixed = nn.Parameter(ampl.zeros(2), {requires_grad = false})
  self.plain = ampl.zeros(7)
  self:register_buffer("seen", ampl.zeros(1))
  self:register_buffer("scratch", ampl.zeros(1), {persistent = false})
  self.body = nn.Sequential(nn.Linear(3, 3, {bias = false}), nn.ReLU(), nn.BatchNorm1d(3))
end

function Net:forward(x)
  return self.body(self.fc1(x)) * self.scale
end

describe("Module", function()
  it("lists parameters in PyTorch's order and names", function()
    local net = Net(2)
    assert.same({"scale", "fixed", "fc1.weight", "fc1.bias", "body.0.weight", "body.2.weight", "body.2.bias"},
                names(net:named_parameters()))
    assert.same({"seen", "scratch", "body.2.running_mean", "body.2.running_var", "body.2.num_batches_tracked"},
                names(net:named_buffers()))
    assert.same({"", "fc1", "body", "body.0", "body.1", "body.2"}, names(net:named_modules()))
    assert.equal(7, #net:parameters())
    assert.equal(2, #net:children())
  end)

  it("has a state dict without what is no state", function()
    assert.same({"body.0.weight", "body.2.bias", "body.2.num_batches_tracked", "body.2.running_mean",
                 "body.2.running_var", "body.2.weight", "fc1.bias", "fc1.weight", "fixed", "scale", "seen"},
                keys(Net(2):state_dict()))
  end)

  it("finds fields that were something else before", function()
    local m = nn.Module:extend("M")()
    m.later, m.head = false, 1
    m.later = ampl.ones({1}, {requires_grad = true})
    m.head = nn.Linear(1, 1)
    assert.same({"later", "head.weight", "head.bias"}, names(m:named_parameters()))
    m.head = nil
    assert.same({"later"}, names(m:named_parameters()))
  end)

  it("keeps a frozen parameter", function()
    local fc = nn.Linear(2, 2)
    fc:requires_grad_(false)
    assert.is_false(fc.weight.requires_grad)
    assert.equal(2, #fc:parameters())
  end)

  it("lists a shared tensor once, and stores it under each name", function()
    local m = nn.Sequential(nn.Linear(3, 3, {bias = false}), nn.Linear(3, 3, {bias = false}))
    m[2].weight = m[1].weight
    assert.equal(1, #m:parameters())
    assert.same({"0.weight", "1.weight"}, keys(m:state_dict()))
    m:load_state_dict({["0.weight"] = ampl.ones(3, 3)})
    assert.equal(9, m[2].weight:sum():item())
    m:to("f64")
    assert.equal(m[1].weight, m[2].weight)
  end)

  it("loads a state, also one without batch counts", function()
    local a, b = Net(2), Net(2)
    local state = a:state_dict()
    state["body.2.num_batches_tracked"] = nil
    b:load_state_dict(state)
    assert.same(a.fc1.weight:totable(), b.fc1.weight:totable())
    a.fc1.weight:detach():fill_(5)
    assert.are_not.same(a.fc1.weight:totable(), b.fc1.weight:totable())
  end)

  it("names what does not fit and changes nothing", function()
    local net = Net(2)
    local before = net.fc1.bias:totable()
    local state = net:state_dict()
    for k, v in pairs(state) do state[k] = v + 1 end
    state["fc1.weight"], state.extra, state.scale = ampl.zeros(3, 5), ampl.zeros(1), nil
    local e = failure(net.load_state_dict, net, state)
    assert.equal("EARG", e.code)
    local text = tostring(e)
    assert.truthy(text:find("missing: scale", 1, true))
    assert.truthy(text:find("unexpected: extra", 1, true))
    assert.truthy(text:find("fc1.weight ({3, 5}, here {3, 2})", 1, true))
    assert.same(before, net.fc1.bias:totable())
    local lists = net:load_state_dict(state, {strict = false})
    assert.same({"scale"}, lists.missing_keys)
    assert.same({"extra"}, lists.unexpected_keys)
    assert.same({"fc1.weight"}, lists.mismatched_keys)
    assert.same(state["fc1.bias"]:totable(), net.fc1.bias:totable())
  end)

  it("switches modes", function()
    local net = Net(2)
    net:eval()
    assert.is_false(net.body[3].training)
    net:train()
    assert.is_true(net.body[3].training)
    assert.equal("f16", net:half().fc1.weight.dtype)
    assert.is_true(net.fc1.weight.requires_grad)
    assert.is_false(net.fixed.requires_grad)
    assert.equal("i64", net.body[3].num_batches_tracked.dtype)
    assert.equal("f32", net:float().fc1.weight.dtype)
  end)

  it("drops gradients or sets them to 0", function()
    local fc = nn.Linear(2, 1)
    fc(ampl.ones(1, 2)):sum():backward()
    fc:zero_grad({set_to_none = false})
    assert.same({{0, 0}}, fc.weight.grad:totable())
    fc:zero_grad()
    assert.is_nil(fc.weight.grad)
  end)

  it("calls hooks until they are removed", function()
    local fc, seen = nn.Linear(2, 1), 0
    local hook = fc:register_forward_hook(function(m, inputs, y)
      assert.equal(fc, m)
      assert.equal(1, #inputs)
      seen = seen + 1
      return y * 0
    end)
    assert.equal(0, fc(ampl.ones(1, 2)):item())
    hook:remove()
    fc(ampl.ones(1, 2))
    assert.equal(1, seen)
    local pre = fc:register_forward_pre_hook(function(_, inputs) return {inputs[1] * 0} end)
    assert.equal(fc.bias:item(), fc(ampl.ones(1, 2)):item())
    pre:remove()
  end)

  it("applies a function to children first", function()
    local order = {}
    Net(2):apply(function(m) order[#order + 1] = m.name end)
    assert.same({"Linear", "Linear", "ReLU", "BatchNorm1d", "Sequential", "Net"}, order)
  end)

  it("shows itself", function()
    local text = tostring(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    assert.truthy(text:find("(0): Linear(in_features = 2, out_features = 3, bias = true)", 1, true))
    assert.truthy(text:find("(1): ReLU(", 1, true))
  end)
end)

describe("containers", function()
  it("count from 1", function()
    local list = nn.ModuleList{nn.Identity(), nn.Linear(1, 1)}
    list:append(nn.ReLU())
    assert.equal(3, #list)
    local n = 0
    for i, m in ipairs(list) do
      assert.equal(list[i], m)
      n = n + 1
    end
    assert.equal(3, n)
    assert.equal("EARG", failure(list.append, list, 5).code)
  end)
end)

describe("layers", function()
  it("say which argument is wrong", function()
    assert.truthy(tostring(failure(nn.Linear, 2)):find("out_features is missing", 1, true))
    assert.truthy(tostring(failure(nn.Linear, 2.5, 1)):find("in_features (argument 1) must be an integer, not 2.5", 1,
                                                            true))
    assert.truthy(tostring(failure(nn.Linear, 2, 1, {biass = true})):find("unknown option \"biass\"", 1, true))
    assert.truthy(tostring(failure(nn.Linear, 2, 1, true, {bias = true})):find("twice", 1, true))
    assert.equal("EVALUE", failure(nn.Conv2d, 3, 4, 3, {groups = 2}).code)
    assert.equal("EVALUE", failure(nn.GroupNorm, 2, 3).code)
    assert.equal("EVALUE", failure(nn.Dropout, 1.5).code)
    assert.equal("ESHAPE", failure(nn.BatchNorm2d(3), ampl.zeros(2, 3)).code)
  end)

  it("take integral floats", function()
    assert.equal(64, nn.Linear(128 * 0.5, 2).in_features)
  end)

  it("drop out in training only, and keep the mean", function()
    ampl.manual_seed(3)
    local drop = nn.Dropout(0.25)
    local y = drop(ampl.ones(10000))
    assert.is_true(math.abs(y:mean():item() - 1) < 0.05)
    assert.is_true(math.abs(y:eq(0):to("f32"):mean():item() - 0.25) < 0.02)
    drop:eval()
    assert.equal(10000, drop(ampl.ones(10000)):sum():item())
  end)

  it("give the padding row of an embedding no gradient", function()
    local e = nn.Embedding(4, 2, {padding_idx = 1})
    assert.same({0, 0}, e.weight[1]:totable())
    e(ampl.tensor({1, 2, 2})):sum():backward()
    assert.same({{0, 0}, {2, 2}, {0, 0}, {0, 0}}, e.weight.grad:totable())
  end)

  it("average all batches alike with momentum = false", function()
    local norm = nn.BatchNorm1d(1, {momentum = false})
    norm(ampl.tensor({{1.0}, {3.0}}))
    norm(ampl.tensor({{5.0}, {7.0}}))
    assert.is_true(math.abs(norm.running_mean:item() - 4) < 1e-5)
    assert.equal(2, norm.num_batches_tracked:item())
  end)

  it("of losses carry their weight to another dtype, outside the state", function()
    local loss = nn.CrossEntropyLoss{weight = ampl.ones(3), label_smoothing = 0.1}
    assert.same({}, loss:state_dict())
    loss:to("f64")
    assert.equal("f64", loss.weight.dtype)
    assert.equal("f64", loss(ampl.zeros({2, 3}, {dtype = "f64"}), ampl.tensor({1, 3})).dtype)
  end)
end)

describe("nn.utils", function()
  local function with_grads(...)
    local list = {}
    for i, g in ipairs({...}) do
      list[i] = ampl.zeros(#g):requires_grad_(true)
      list[i].grad = ampl.tensor(g)
    end
    return list
  end

  it("clips to a norm as PyTorch does", function()
    local list = with_grads({3.0, 4.0})
    local norm = nn.utils.clip_grad_norm_(list, 1)
    assert.equal("f32", norm.dtype)
    assert.same({}, norm.shape)
    assert.equal(5, norm:item())
    local g = list[1].grad:totable()
    assert.is_true(math.abs(g[1] - 0.59999990) < 1e-7 and math.abs(g[2] - 0.79999983) < 1e-7)
  end)

  it("leaves gradients alone whose norm is 0, small or not finite", function()
    local zero = with_grads({0.0, 0.0})
    assert.equal(0, nn.utils.clip_grad_norm_(zero, 1):item())
    assert.same({0, 0}, zero[1].grad:totable())
    local small = with_grads({0.3, 0.4})
    local before = small[1].grad:totable()
    nn.utils.clip_grad_norm_(small, 1)
    assert.same(before, small[1].grad:totable())
    local bad = with_grads({1.0, 2.0}, {math.huge, 1.0})
    assert.equal(math.huge, nn.utils.clip_grad_norm_(bad, 1):item())
    assert.same({1, 2}, bad[1].grad:totable())
    assert.same({math.huge, 1}, bad[2].grad:totable())
    local nan = with_grads({1.0}, {0 / 0})
    local norm = nn.utils.clip_grad_norm_(nan, 1):item()
    assert.is_true(norm ~= norm)
    assert.same({1}, nan[1].grad:totable())
  end)

  it("names the parameter when asked to raise", function()
    local fc = nn.Linear(2, 1)
    fc.weight.grad = ampl.ones(1, 2)
    fc.bias.grad = ampl.tensor({math.huge})
    local e = failure(nn.utils.clip_grad_norm_, fc, 1, {error_if_nonfinite = true})
    assert.equal("EVALUE", e.code)
    assert.truthy(tostring(e):find("bias", 1, true))
  end)

  it("measures f16 gradients and huge ones without overflow", function()
    local half = {ampl.zeros(2):half():requires_grad_(true)}
    half[1].grad = ampl.tensor({30000.0, 40000.0}):half()
    assert.equal(50000, nn.utils.get_total_norm({half[1].grad}):item())
    assert.equal(50000, nn.utils.clip_grad_norm_(half, 100):item())
    assert.is_true(math.abs(half[1].grad:float():norm():item() - 100) < 0.1)
    local huge = with_grads({3e30, 4e30})
    assert.is_true(math.abs(nn.utils.clip_grad_norm_(huge, 1):item() / 5e30 - 1) < 1e-6)
    assert.is_true(math.abs(huge[1].grad:norm():item() - 1) < 1e-5)
  end)

  it("takes other norms", function()
    local list = with_grads({3.0, -4.0}, {1.0})
    local grads = {list[1].grad, list[2].grad}
    assert.equal(8, nn.utils.get_total_norm(grads, {norm_type = 1}):item())
    assert.equal(4, nn.utils.get_total_norm(grads, math.huge):item())
    assert.equal(0, nn.utils.get_total_norm({}):item())
  end)

  it("clips values", function()
    local list = with_grads({3.0, -4.0, 0.5})
    nn.utils.clip_grad_value_(list, 1)
    assert.same({1, -1, 0.5}, list[1].grad:totable())
  end)

  it("makes a vector of parameters and back", function()
    local fc = nn.Linear(2, 3)
    local v = nn.utils.parameters_to_vector(fc)
    assert.same({9}, v.shape)
    nn.utils.vector_to_parameters(v * 0 + 2, fc)
    assert.equal(12, fc.weight:sum():item())
    assert.equal(6, fc.bias:sum():item())
    assert.equal("ESHAPE", failure(nn.utils.vector_to_parameters, ampl.zeros(5), fc).code)
  end)

  it("tells how gradients look", function()
    local fc = nn.Linear(2, 2)
    fc.weight.grad = ampl.tensor({{0.0, -2.0}, {1.0, math.huge}})
    local s = nn.utils.grad_stats(fc)
    assert.is_nil(s.bias)
    assert.same({max = 2, mean_abs = 1, zero = 0.25, nonfinite = 1}, s.weight)
  end)
end)

describe("models", function()
  it("gpt looks only backwards and ties its output weights", function()
    ampl.manual_seed(1)
    local model = ampl.models.gpt{layers = 2, d = 16, heads = 2, context = 8, vocab = 11}
    model:eval()
    local a, b = ampl.tensor({{1, 2, 3, 4}}), ampl.tensor({{1, 2, 3, 9}})
    local ya, yb = model(a), model(b)
    assert.same({1, 4, 11}, ya.shape)
    assert.same(ya[1][3]:totable(), yb[1][3]:totable())
    assert.are_not.same(ya[1][4]:totable(), yb[1][4]:totable())
    assert.equal(model.lm_head.weight, model.transformer.wte.weight)
    assert.equal("ESHAPE", failure(model, ampl.ones({1, 9}, {dtype = "i64"})).code)
  end)

  it("mlp has PyTorch's names", function()
    local model = ampl.models.mlp{sizes = {4, 3, 2}, activation = "tanh"}
    assert.same({"0.weight", "0.bias", "2.weight", "2.bias"}, names(model:named_parameters()))
    assert.same({5, 2}, model(ampl.zeros(5, 4)).shape)
  end)

  it("says so when a module holds itself", function()
    local M = nn.Module:extend("Loop")
    local m = M()
    m.self = m
    local ok, e = pcall(m.state_dict, m)
    assert.is_false(ok)
    assert.are.equal("ESTATE", e.code)
    assert.is_truthy(tostring(m):find("...", 1, true))
    assert.are.same({}, m:parameters())
  end)
end)
