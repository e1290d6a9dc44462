-- amp.initialize, scale_loss, master_params.

local ampl = require "ampl"
local amp, nn, optim = ampl.amp, ampl.nn, ampl.optim
local inf = math.huge

local function values(x) return x:to("f64"):reshape(-1):totable() end

local function failure(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok, "must raise")
  return e
end

local function model()
  ampl.manual_seed(4)
  return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
end

local function data()
  ampl.manual_seed(8)
  return ampl.randn(16, 4), ampl.randn(16, 2)
end

local function train(level, options)
  local net, x, y = model(), data()
  local opt = optim.SGD(net, {lr = 0.1, momentum = 0.9})
  if level then
    options = options or {}
    options.opt_level = level
    net, opt = amp.initialize(net, opt, options)
  end
  local losses = {}
  for i = 1, 12 do
    opt:zero_grad()
    local loss = (net(x) - y):square():mean()
    if level then amp.scale_loss(loss, opt, function(scaled) scaled:backward() end)
    else loss:backward() end
    assert.is_not_equal(false, opt:step())
    losses[i] = loss:item()
  end
  return losses, net, opt
end

describe("amp.initialize", function()
  local want
  setup(function() want = train(nil) end)

  for _, c in ipairs {{"O0", 1e-6}, {"O1", 0.02}, {"O2", 0.02}, {"O3", 0.05}} do
    it(c[1] .. " learns what a plain run learns", function()
      local got = train(c[1])
      assert.is_true(want[12] < 0.7 * want[1])
      for i, v in ipairs(want) do
        assert.is_true(math.abs(v - got[i]) <= c[2] * math.max(v, 0.1), ("step %d: %g, %g"):format(i, v, got[i]))
      end
    end)
  end

  it("O2 keeps f32 masters and batch norms, and a 16-bit model in step with them", function()
    local _, net, opt = train("O2")
    assert.same({"f16", "f32", "f16"}, {net[1].weight.dtype, net[2].weight.dtype, net[4].bias.dtype})
    local masters = amp.master_params(opt)
    for i, p in ipairs(net:parameters()) do
      assert.equal("f32", masters[i].dtype)
      assert.equal(masters[i]:to(p.dtype):tobytes(), p:tobytes())
    end
    assert.equal("f32", net((data())).dtype)
  end)

  it("O3 puts all in 16 bits, O1 nothing", function()
    local _, net, opt = train("O3")
    assert.same({"f16", "f16"}, {net[1].weight.dtype, net[2].weight.dtype})
    assert.equal("f16", amp.master_params(opt)[1].dtype)
    local _, plain = train("O1")
    assert.equal("f32", plain[1].weight.dtype)
    _, net = train("O2", {cast_model_type = "bf16", keep_batchnorm_fp32 = false})
    assert.same({"bf16", "bf16"}, {net[1].weight.dtype, net[2].weight.dtype})
  end)

  it("skips one step after an overflow, at a lower scale", function()
    local net, x = model(), data()
    local opt = optim.SGD(net, {lr = 0.1})
    amp.initialize(net, opt, {opt_level = "O2"})
    local before = values(net[1].weight)
    local seen = {}
    for i = 1, 2 do
      opt:zero_grad()
      local loss = net(x):square():mean()
      if i == 1 then loss = loss * inf end
      amp.scale_loss(loss, opt, function(scaled)
        seen[i] = scaled:item() / loss:item()
        scaled:backward()
      end)
      if i == 1 then
        assert.is_false(opt:step())
        assert.same(before, values(net[1].weight))
      end
    end
    assert.equal(32768, seen[2])
    assert.is_not_equal(false, opt:step())
    assert.is_not.same(before, values(net[1].weight))
  end)

  it("adds the gradients of several losses", function()
    local net, x, y = model(), data()
    local opt = optim.SGD(net, {lr = 0.1})
    amp.initialize(net, opt, {opt_level = "O0", loss_scale = 128.0})
    for _ = 1, 2 do
      amp.scale_loss((net(x) - y):square():mean(), opt, function(scaled) scaled:backward() end)
    end
    local twice = values(net[4].weight.grad)
    opt:zero_grad()
    amp.scale_loss((net(x) - y):square():mean(), opt, function(scaled) scaled:backward() end)
    for i, v in ipairs(values(net[4].weight.grad)) do
      assert.is_true(math.abs(2 * v - twice[i]) <= 1e-5 * math.max(1, math.abs(v)))
    end
  end)

  it("says what is wrong", function()
    local net = model()
    local opt = optim.SGD(net, {lr = 0.1})
    assert.matches("opt_level", failure(amp.initialize, net, opt, {opt_level = "O4"}).message)
    assert.equal("ESTATE", failure(amp.master_params, opt).code)
    assert.equal("ESTATE", failure(amp.scale_loss, ampl.ones({}), opt, print).code)
    assert.equal("EARG", failure(amp.initialize, net, opt, {loss_scale = "static"}).code)
    assert.equal("EVALUE", failure(amp.initialize, net, opt, {opt_level = "O1", master_weights = true}).code)
    amp.initialize(net, opt, {opt_level = "O1"})
    assert.matches("before", failure(amp.initialize, net, opt, {opt_level = "O1"}).message)
  end)
end)
