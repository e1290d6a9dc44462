-- O2: the model's 16-bit weights and the optimiser's f32 masters say the same, whichever was written.

local ampl = require "ampl"
local amp, nn, optim = ampl.amp, ampl.nn, ampl.optim

local function values(x) return x:detach():to("f64"):reshape(-1):totable() end

-- A layer of one weight each way, its optimiser (lr 0 keeps what is there), and the one master.
local function layer(options, lr, weight)
  local m = nn.Linear(2, 1, {bias = false})
  ampl.no_grad(function() m.weight:copy_(ampl.tensor {weight or {0.1, 0.2}}) end)
  local o = optim.SGD(m:parameters(), {lr = lr or 0})
  options = options or {}
  options.opt_level, options.loss_scale = options.opt_level or "O2", options.loss_scale or 8
  return amp.initialize(m, o, options)
end

local function step(m, o, x)
  amp.scale_loss(m(x or ampl.ones(1, 2)):sum(), o, function(s) s:backward() end)
  o:step()
end

local function near(want, got, tol)
  assert.equal(#want, #got)
  for i, v in ipairs(want) do
    assert.is_true(math.abs(v - got[i]) <= tol, ("element %d: %.9g, %.9g"):format(i, v, got[i]))
  end
end

-- Ways to bring {5, -3} into the model.
local edits = {
  load_state_dict = function(m) m:load_state_dict {weight = ampl.tensor {{5.0, -3.0}}} end,
  ["load_state_dict of the state's own dtype"] = function(m)
    m:load_state_dict {weight = ampl.tensor({{5.0, -3.0}}, {dtype = m.weight.dtype})}
  end,
  ["copy_"] = function(m) ampl.no_grad(function() m.weight:copy_(ampl.tensor {{5.0, -3.0}}) end) end,
  ["elements"] = function(m)
    ampl.no_grad(function()
      m.weight[1][1] = 5
      m.weight[1][2] = -3
    end)
  end,
  ["a view"] = function(m)
    ampl.no_grad(function() m.weight:view(2):copy_(ampl.tensor {5.0, -3.0}) end)
  end,
  ["a detached alias"] = function(m) m.weight:detach():copy_(ampl.tensor {{5.0, -3.0}}) end,
  ["nn.init"] = function(m)
    nn.init.constant_(m.weight, 5)
    ampl.no_grad(function() m.weight:detach()[1][2] = -3 end)
  end,
  ["the state dict's tensors"] = function(m) m:state_dict().weight:copy_(ampl.tensor {{5.0, -3.0}}) end,
  ["an assigned parameter"] = function(m) m.weight = nn.Parameter(ampl.tensor {{5.0, -3.0}}) end,
  ["an assigned tensor"] = function(m) m.weight = ampl.tensor {{5.0, -3.0}} end,
  ["an assigned tensor of 16 bits"] = function(m)
    m.weight = ampl.tensor({{5.0, -3.0}}, {dtype = m.weight.dtype}):requires_grad_(true)
  end,
}

describe("masters", function()
  for name, edit in pairs(edits) do
    for _, dtype in ipairs {"f16", "bf16"} do
      it(("are written by %s, %s"):format(name, dtype), function()
        local m, o = layer {cast_model_type = dtype}
        for i = 1, 3 do
          if i == 2 then edit(m) end
          step(m, o)
          if i >= 2 then
            assert.same({5, -3}, values(m.weight))
            assert.same({5, -3}, values(amp.master_params(o)[1]))
          end
          assert.equal(dtype, m.weight.dtype)
        end
        -- and they go on learning from there: the gradient of the sum is the input
        o.param_groups[1].lr = 0.5
        o:zero_grad()
        step(m, o)
        assert.same({4.5, -3.5}, values(m.weight))
        assert.same({4.5, -3.5}, values(amp.master_params(o)[1]))
      end)
    end
  end

  it("are seen at once by those who ask for them", function()
    for name, edit in pairs(edits) do
      local m, o = layer()
      edit(m)
      assert.same({5, -3}, values(amp.master_params(o)[1]), name)
    end
  end)

  it("keep the precision of a loaded state, and of elements that were not written", function()
    local m, o = layer()
    m:load_state_dict {weight = ampl.tensor {{1 / 3, 2 / 3}}}
    near({1 / 3, 2 / 3}, values(amp.master_params(o)[1]), 1e-7)
    ampl.no_grad(function() m.weight[1][2] = 7 end)
    step(m, o)
    near({1 / 3, 7}, values(amp.master_params(o)[1]), 1e-7)
  end)

  it("reach the model when they are written themselves, before its next forward", function()
    local m, o = layer()
    ampl.no_grad(function() amp.master_params(o)[1]:fill_(2) end)
    assert.equal(4, m(ampl.ones(1, 2)):item())
    assert.same({2, 2}, values(m.weight))
    ampl.no_grad(function() amp.master_params(o)[1]:fill_(3) end)
    o:step()
    assert.same({3, 3}, values(m.weight))
  end)

  it("stay through Module:to; the model stays in 16 bits", function()
    for _, target in ipairs {"f32", "bf16", "f16", "f64", "cpu"} do
      local m, o = layer({}, 0.5)
      m:to(target)
      step(m, o)
      assert.equal("f16", m.weight.dtype)
      near({-0.4, -0.3}, values(amp.master_params(o)[1]), 1e-2)
      near({-0.4, -0.3}, values(m.weight), 1e-2)
      o:zero_grad()
      step(m, o)
      near({-0.9, -0.8}, values(m.weight), 1e-2)
    end
  end)

  it("are shared by tied weights", function()
    local net = nn.Sequential(nn.Linear(2, 2, {bias = false}), nn.Linear(2, 2, {bias = false}))
    net[2].weight = net[1].weight
    local o = optim.SGD(net, {lr = 0})
    amp.initialize(net, o, {opt_level = "O2", loss_scale = 8})
    assert.equal(1, #amp.master_params(o))
    ampl.no_grad(function() net[2].weight:fill_(3) end)
    step(net, o)
    assert.same({3, 3, 3, 3}, values(net[1].weight))
    assert.same({3, 3, 3, 3}, values(amp.master_params(o)[1]))
    assert.equal(net[1].weight, net[2].weight)
  end)

  it("are not rounded by steps that change nothing", function()
    local m, o = layer({}, 0, {1 / 3, 2 / 3})
    for _ = 1, 3 do
      step(m, o)
      near({1 / 3, 2 / 3}, values(amp.master_params(o)[1]), 1e-7)
    end
  end)
end)

describe("weights that are their own masters", function()
  for _, c in ipairs {{"O0"}, {"O1"}, {"O3"}, {"O2", false}} do
    it(("are written in place: %s%s"):format(c[1], c[2] == false and " without masters" or ""), function()
      for _, name in ipairs {"load_state_dict", "copy_", "elements", "a view", "a detached alias"} do
        local m, o = layer({opt_level = c[1], master_weights = c[2]})
        edits[name](m)
        step(m, o)
        assert.same({5, -3}, values(m.weight), name)
        assert.equal(m.weight, amp.master_params(o)[1])
        o.param_groups[1].lr = 0.5
        o:zero_grad()
        step(m, o)
        assert.same({4.5, -3.5}, values(m.weight), name)
      end
    end)
  end
end)

describe("the optimiser's state", function()
  local function trained(options, state)
    local m = nn.Linear(2, 1, {bias = false})
    ampl.no_grad(function() m.weight:copy_(ampl.tensor {{1.0, 2.0}}) end)
    local o = optim.SGD(m:parameters(), {lr = 0.5, momentum = 0.5})
    if state == "before" then                           -- a step in f32 leaves a momentum of {1, 1}
      m(ampl.ones(1, 2)):sum():backward()
      o:step()
      o:zero_grad()
      assert.same({0.5, 1.5}, values(m.weight))
    end
    options.loss_scale = 8
    amp.initialize(m, o, options)
    if state == "after" then
      local other = nn.Linear(2, 1, {bias = false})
      local p = optim.SGD(other:parameters(), {lr = 0.5, momentum = 0.5})
      other(ampl.ones(1, 2)):sum():backward()
      p:step()
      o:load_state_dict(p:state_dict())
    end
    step(m, o)
    return values(m.weight), values(amp.master_params(o)[1])
  end

  for _, c in ipairs {{"O0"}, {"O1"}, {"O2"}, {"O3"}, {"O2", false}} do
    it(("is taken along, from before and after: %s%s"):format(c[1], c[2] == false and " without masters" or ""),
    function()
      local function options() return {opt_level = c[1], master_weights = c[2]} end
      -- momentum 0.5 * 1 + 1
      local low, master = trained(options(), "before")
      assert.same({-0.25, 0.75}, low)
      assert.same({-0.25, 0.75}, master)
      low, master = trained(options(), "after")
      assert.same({0.25, 1.25}, low)
      assert.same({0.25, 1.25}, master)
    end)
  end
end)
