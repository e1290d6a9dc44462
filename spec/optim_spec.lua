-- Optimisers and schedulers: groups, state, what is left alone, wrong arguments.  Their arithmetic is in golden_*_spec.

local ampl = require "ampl"
local nn, optim = ampl.nn, ampl.optim

local function failure(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  return e
end

local function parameter(values)
  return ampl.tensor(values, {dtype = "f32"}):requires_grad_(true)
end

describe("Optimizer", function()
  it("takes a module, a list and groups", function()
    local fc = nn.Linear(2, 1)
    assert.equal(2, #optim.SGD(fc, {lr = 0.1}).param_groups[1].params)
    assert.equal(1, #optim.SGD({fc.weight}, 0.1).param_groups[1].params)
    local opt = optim.Adam({{params = {fc.weight}, lr = 0.5}, {params = {fc.bias}}}, {lr = 0.1, betas = {0.8, 0.9}})
    assert.equal(0.5, opt.param_groups[1].lr)
    assert.equal(0.1, opt.param_groups[2].lr)
    assert.same({0.8, 0.9}, opt.param_groups[2].betas)
    assert.are_not.equal(opt.param_groups[1].betas, opt.param_groups[2].betas)
  end)

  it("reads its groups at every step", function()
    local p = parameter({1.0})
    local opt = optim.SGD({p}, {lr = 0.1})
    p.grad = ampl.ones(1)
    opt.param_groups[1].lr = 0.5
    opt:step()
    assert.equal(0.5, p:item())
  end)

  it("leaves a parameter without a gradient alone", function()
    local p, q = parameter({1.0}), parameter({1.0})
    local opt = optim.AdamW({p, q}, {lr = 0.1, weight_decay = 0.5})
    p.grad = ampl.ones(1)
    opt:step()
    assert.equal(1, q:item())
    assert.is_nil(opt.state[q])
    assert.are_not.equal(1, p:item())
  end)

  it("begins a momentum that is turned on later", function()
    local p = parameter({1.0})
    local opt = optim.SGD({p}, {lr = 0.5})
    p.grad = ampl.ones(1)
    opt:step()
    opt.param_groups[1].momentum = 0.5
    opt:step()
    assert.equal(0, p:item())
    opt:step()
    assert.equal(-0.75, p:item())
  end)

  it("runs a closure with gradients on and returns its loss", function()
    local p = parameter({2.0})
    local opt = optim.SGD({p}, {lr = 0.25})
    local loss
    ampl.no_grad(function()
      loss = opt:step(function()
        opt:zero_grad()
        local l = (p * p):sum()
        l:backward()
        return l
      end)
    end)
    assert.equal(4, loss:item())
    assert.equal(1, p:item())
  end)

  it("drops gradients or sets them to 0", function()
    local p = parameter({2.0})
    local opt = optim.SGD({p}, {lr = 0.25})
    p.grad = ampl.ones(1)
    opt:zero_grad({set_to_none = false})
    assert.same({0}, p.grad:totable())
    opt:zero_grad()
    assert.is_nil(p.grad)
  end)

  it("keeps state beyond the scope of a step", function()
    local p = parameter({2.0})
    local opt = optim.Adam({p})
    for _ = 1, 2 do
      ampl.scope(function()
        p.grad = ampl.ones(1)
        opt:step()
      end)
    end
    assert.equal(2, opt.state[p].step:item())
    assert.equal("number", type(opt.state[p].exp_avg:item()))
  end)

  it("has a state dict in PyTorch's layout", function()
    local p, q = parameter({2.0}), parameter({{1.0, 2.0}})
    local opt = optim.Adam({{params = {p}}, {params = {q}, lr = 0.5}})
    q.grad = ampl.ones(1, 2)
    opt:step()
    local state = opt:state_dict()
    assert.same({1}, state.param_groups[1].params)
    assert.same({2}, state.param_groups[2].params)
    assert.equal(0.5, state.param_groups[2].lr)
    assert.same({}, state.state[1])
    assert.equal(1, state.state[2].step:item())
    assert.same({1, 2}, state.state[2].exp_avg.shape)
  end)

  it("refuses a state that does not fit, unchanged", function()
    local p, q = parameter({2.0}), parameter({1.0, 2.0})
    local a, b = optim.Adam({p}), optim.Adam({q})
    p.grad, q.grad = ampl.ones(1), ampl.ones(2)
    a:step()
    b:step()
    assert.equal("EARG", failure(a.load_state_dict, a, b:state_dict()).code)
    assert.same({1}, a.state[p].exp_avg.shape)
    assert.equal("EARG", failure(a.load_state_dict, a, {}).code)
    local both = optim.Adam({p, q})
    assert.equal("EARG", failure(a.load_state_dict, a, both:state_dict()).code)
  end)

  it("says what is wrong with its arguments", function()
    local p = parameter({2.0})
    assert.truthy(tostring(failure(optim.SGD, {}, {lr = 1})):find("no parameters", 1, true))
    assert.equal("EVALUE", failure(optim.SGD, {p}, {lr = -1}).code)
    assert.equal("EVALUE", failure(optim.SGD, {p}, {lr = 1, nesterov = true}).code)
    assert.equal("EVALUE", failure(optim.Adam, {p}, {betas = {0.9, 1.0}}).code)
    assert.equal("EARG", failure(optim.Adam, {p, p}).code)
    assert.equal("EARG", failure(optim.Adam, {p * 2}).code)
    assert.truthy(tostring(failure(optim.Adam, {p}, {rate = 1})):find("unknown option \"rate\"", 1, true))
    local opt = optim.Adam({p})
    assert.equal("EARG", failure(opt.add_param_group, opt, {params = {p}}).code)
  end)
end)

describe("lr_scheduler", function()
  local function fake_scaler()
    local s = {taken = true}
    function s:step_taken() return self.taken end
    return s
  end

  it("stands still after a skipped step when it knows the scaler", function()
    local opt = optim.SGD({parameter({1.0})}, {lr = 1.0})
    local scaler = fake_scaler()
    local s = optim.lr_scheduler.StepLR(opt, 1, {gamma = 0.5, scaler = scaler})
    s:step()
    assert.same({0.5}, s:get_last_lr())
    scaler.taken = false
    s:step()
    assert.same({0.5}, s:get_last_lr())
    scaler.taken = true
    s:step()
    assert.same({0.25}, s:get_last_lr())
    assert.is_nil(s:state_dict().scaler)
  end)

  it("says what is wrong", function()
    local opt = optim.SGD({parameter({1.0})}, {lr = 1.0})
    local S = optim.lr_scheduler
    assert.equal("EARG", failure(S.StepLR, {}, 1).code)
    assert.truthy(tostring(failure(S.StepLR, opt)):find("step_size is missing", 1, true))
    assert.truthy(tostring(failure(S.StepLR, opt, 1, {gama = 1})):find("unknown option \"gama\"", 1, true))
    assert.equal("EARG", failure(S.ReduceLROnPlateau(opt).step, S.ReduceLROnPlateau(opt)).code)
    assert.equal("EARG", failure(S.SequentialLR, opt, {S.ConstantLR(opt)}, {1, 2}).code)
    assert.equal("EARG", failure(S.OneCycleLR, opt, {max_lr = {1, 2}, total_steps = 5}).code)
  end)
end)
