-- The gradient scaler, the accumulator, and what surrounds them: one test for each known trap, named by its number in
-- the list of AMP semantics that the project keeps to.  Long because the list is.

local ampl = require "ampl"
local amp, F, nn, optim = ampl.amp, ampl.nn.functional, ampl.nn, ampl.optim
local inf, nan = math.huge, 0 / 0

local function values(x) return x:to("f64"):reshape(-1):totable() end

local function failure(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok, "must raise")
  return e
end

local function near(want, got, tol)
  assert.equal(#want, #got)
  for i, v in ipairs(want) do
    local fits = math.abs(v - got[i]) <= tol * math.max(1, math.abs(v))
    assert.is_true(fits, ("element %d: %.9g, %.9g"):format(i, v, got[i]))
  end
end

local function parameter(list, opts)
  local p = ampl.tensor(list, {dtype = opts and opts.dtype or "f32"})
  return p:requires_grad_(true)
end

-- The gradient of p becomes coef * scale, as by backward of a scaled loss.
local function backward(scaler, p, coef)
  scaler:scale((p * ampl.tensor(coef, {dtype = "f32"}):to(p.dtype)):sum()):backward()
end

-- One iteration; whether the step was taken.
local function iterate(scaler, opt, p, coef)
  opt:zero_grad()
  backward(scaler, p, coef)
  local taken = scaler:step(opt)
  scaler:update()
  return taken
end

local function warnings_of(fn)
  local list = {}
  ampl.on_warning(function(w) list[#list + 1] = w end)
  local ok, e = pcall(fn, list)
  ampl.on_warning(nil)
  if not ok then error(e, 0) end
  return list
end

local function setup(options, list)
  local p = parameter(list or {1, 2})
  return amp.GradScaler(options), optim.SGD({p}, {lr = 0.5}), p
end

describe("acceptance", function()
  it("2: the trace of scale and tracker", function()
    local s, opt, p = setup({init_scale = 4, growth_interval = 2, growth_factor = 2, backoff_factor = 0.25})
    local seen = {}
    for _, c in ipairs {1.0, 1.0, inf} do
      iterate(s, opt, p, {c, 1})
      seen[#seen + 1] = {s:get_scale(), s:get_growth_tracker()}
    end
    assert.same({{4, 1}, {8, 0}, {2, 0}}, seen)
  end)

  it("3, B34: the scale never becomes inf, and takes a ceiling", function()
    local s, opt, p = setup({init_scale = 1e38, growth_factor = 16, growth_interval = 1})
    for _ = 1, 5 do
      iterate(s, opt, p, {1e-10, 0})
      assert.is_true(s:get_scale() < inf)
    end
    s, opt, p = setup({init_scale = 8, growth_interval = 1, max_scale = 32})
    for _ = 1, 5 do iterate(s, opt, p, {1, 1}) end
    assert.equal(32, s:get_scale())
    s, opt, p = setup({growth_interval = 1})
    for _ = 1, 130 do iterate(s, opt, p, {0, 0}) end
    assert.equal(2.0 ^ 127, s:get_scale())
  end)

  it("4: state round trip, before and after the first scale", function()
    local s = amp.GradScaler{init_scale = 3, growth_factor = 4, backoff_factor = 0.5, growth_interval = 2}
    for _ = 1, 2 do
      local t = amp.GradScaler{init_scale = 7}
      t:load_state_dict(s:state_dict())
      assert.same(s:state_dict(), t:state_dict())
      assert.equal(3, t:get_scale())
      assert.equal(0, t:get_growth_tracker())
      s:scale(ampl.ones({}))
    end
  end)

  -- A small network trained with f16 products, against the same in f32; step 3 of the f32 run is left out, where the
  -- other run is made to overflow.
  local function train(kind, mixed)
    ampl.manual_seed(3)
    local x, y = ampl.randn(16, 4), ampl.randn(16, 2)
    local net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    local first, second = net[1]:parameters(), net[3]:parameters()
    local opts = kind == "two optimizers" and {optim.SGD(first, {lr = 0.1}), optim.SGD(second, {lr = 0.05})}
      or {optim.SGD(net, {lr = 0.1, momentum = 0.9})}
    local s = amp.GradScaler{init_scale = 128, growth_interval = 2, enabled = mixed}
    for step = 1, 6 do
      local parts = kind == "accumulated" and 2 or 1
      for _, o in ipairs(opts) do o:zero_grad() end
      for part = 1, parts do
        local n = 16 // parts
        local a = x:narrow(1, (part - 1) * n + 1, n)
        local b = y:narrow(1, (part - 1) * n + 1, n)
        local loss = (net(a) - b):square():mean() / parts
        if kind == "penalty" then
          local g = ampl.grad(s:scale(loss), net:parameters(), {create_graph = true})
          local inv, sum = 1 / s:get_scale(), nil
          for _, e in ipairs {g} do sum = (e * inv):square():sum() end
          loss = loss + sum
        end
        s:scale(loss):backward()
      end
      local skipped = step == 3
      if skipped and mixed then first[1].grad:mul_(inf) end
      for i, o in ipairs(opts) do
        if kind == "clipped" then
          s:unscale_(o)
          nn.utils.clip_grad_norm_(net, 0.5)
        end
        if mixed then
          assert.equal(not (skipped and i == 1), (s:step(o)))
        elseif not (skipped and i == 1) then
          s:step(o)
        end
      end
      s:update()
    end
    local out = {}
    for _, p in ipairs(net:parameters()) do
      for _, v in ipairs(values(p)) do out[#out + 1] = v end
    end
    return out
  end

  for _, kind in ipairs {"single", "clipped", "accumulated", "penalty", "two optimizers"} do
    it("5: a scaled run equals a plain one: " .. kind, function()
      near(train(kind, false), train(kind, true), 1e-5)
    end)
  end

  it("8: clipping [3, 4] to norm 1, and a norm of 0", function()
    local p = parameter({0, 0})
    p.grad = ampl.tensor({3.0, 4.0})
    assert.equal(5, nn.utils.clip_grad_norm_({p}, 1.0):item())
    near({0.59999990, 0.79999983}, values(p.grad), 1e-7)
    p.grad = ampl.zeros(2)
    assert.equal(0, nn.utils.clip_grad_norm_({p}, 1.0):item())
    assert.same({0, 0}, values(p.grad))
  end)
end)

describe("skips", function()
  it("B29, B30: a scheduler that knows the scaler stands still on a skip", function()
    local s, opt, p = setup({init_scale = 8})
    local sched = optim.lr_scheduler.StepLR(opt, {step_size = 1, gamma = 0.5, scaler = s})
    local warned = warnings_of(function()
      assert.is_false(iterate(s, opt, p, {inf, 1}))
      sched:step()
      assert.equal(0.5, opt.param_groups[1].lr)
      assert.is_true(iterate(s, opt, p, {1, 1}))
      sched:step()
      assert.equal(0.25, opt.param_groups[1].lr)
    end)
    assert.equal(0, #warned)
  end)

  it("B30: of two optimizers, the one that stepped goes on", function()
    local a, b = parameter({1}), parameter({1})
    local s = amp.GradScaler{init_scale = 8}
    local A, B = optim.SGD({a}, {lr = 1}), optim.SGD({b}, {lr = 1})
    local forA = optim.lr_scheduler.StepLR(A, {step_size = 1, gamma = 0.5, scaler = s})
    local forB = optim.lr_scheduler.StepLR(B, {step_size = 1, gamma = 0.5, scaler = s})
    assert.is_true(s:step_taken(A))
    backward(s, a, {1})
    backward(s, b, {inf})
    s:step(A)
    s:step(B)
    s:update()
    forA:step()
    forB:step()
    assert.same({0.5, 1}, {A.param_groups[1].lr, B.param_groups[1].lr})
  end)

  it("B32: no step with an inf after unscale_ and clipping", function()
    for _, name in ipairs {"SGD", "Adam", "AdamW"} do
      local p = parameter({1, 2})
      local s, opt = amp.GradScaler{init_scale = 8}, optim[name]({p}, {lr = 0.5})
      backward(s, p, {inf, 1})
      s:unscale_(opt)
      nn.utils.clip_grad_norm_({p}, 1.0)
      assert.is_false(s:step(opt))
      s:update()
      assert.same({1, 2}, values(p))
      assert.equal(4, s:get_scale())
      assert.is_nil(next(opt:state_dict().state[1]))
    end
  end)

  it("B50, B51, B61: step says whether it was taken, stats counts and explains", function()
    local s, opt, p = setup({init_scale = 8})
    assert.same({taken = 0, skipped = 0, calibrating = 0, consecutive_skips = 0}, s:stats())
    assert.is_false(iterate(s, opt, p, {1, nan}))
    assert.is_false(iterate(s, opt, p, {1, nan}))
    assert.is_true(iterate(s, opt, p, {1, 1}))
    assert.is_false(iterate(s, opt, p, {inf, 1}))
    local st = s:stats()
    assert.same({1, 3, 2, 1}, {st.taken, st.skipped, st.calibrating, st.consecutive_skips})
    assert.same({step = 4, parameter = 1, index = 1, scale = 2}, st.last_skip)
    local t = amp.GradScaler{}
    t:load_state_dict(s:state_dict())
    local loaded = t:stats()
    assert.same({1, 3, 2, 1}, {loaded.taken, loaded.skipped, loaded.calibrating, loaded.consecutive_skips})
  end)

  it("B37: the first bad parameter has its name where the optimizer knows it", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    local opt, s = optim.SGD(net, {lr = 0.1}), amp.GradScaler{init_scale = 8}
    s:scale(net(ampl.ones(1, 2)):sum()):backward()
    net[2].bias.grad:mul_(inf)
    s:step(opt)
    s:update()
    assert.equal("1.bias", s:stats().last_skip.parameter)
    assert.equal(4, s:stats().last_skip.index)
  end)

  it("leave gradients readable until backward replaces them", function()
    local a, b = parameter({1, 2}), parameter({3})
    local s, opt = amp.GradScaler{init_scale = 8}, optim.SGD({a, b}, {lr = 0.5})
    local function both(c, d)
      s:scale((a * ampl.tensor(c)):sum() + (b * ampl.tensor(d)):sum()):backward()
    end
    both({1.0, inf}, {1.0})
    assert.is_false(s:step(opt))
    s:update()
    assert.same({1, inf}, values(a.grad))
    backward(s, a, {2.0, 4.0})                          -- replaces, without zero_grad
    assert.same({8, 16}, values(a.grad))
    assert.same({1}, values(b.grad))                    -- still to be read, but used up:
    assert.is_true(s:step(opt))
    s:update()
    assert.same({0, 0}, values(a))
    assert.same({3}, values(b))
    assert.is_nil(b.grad)
  end)

  it("an assignment or zero_grad makes a gradient count again", function()
    local s, opt, p = setup({init_scale = 8})
    for _, fresh in ipairs {function() p.grad = ampl.tensor({4.0, 4.0}) end,
                            function() opt:zero_grad({set_to_none = false}); backward(s, p, {1, 1}) end} do
      s:update(8)
      iterate(s, opt, p, {inf, 0})
      fresh()
      local before = values(p)
      assert.is_true(s:step(opt))
      s:update()
      assert.same({before[1] - 0.5, before[2] - 0.5}, values(p))
    end
  end)
end)

describe("limits", function()
  it("B35: a floor, with one warning when it is hit; below 1 by default", function()
    local s, opt, p = setup({init_scale = 4, min_scale = 1})
    local list = warnings_of(function() for _ = 1, 5 do iterate(s, opt, p, {nan, 1}) end end)
    assert.equal(1, s:get_scale())
    assert.equal(1, #list)
    assert.equal("scale_floor", list[1].code)
    assert.matches("parameter 1", list[1].message)
    s, opt, p = setup({init_scale = 1})
    iterate(s, opt, p, {nan, 1})
    assert.equal(0.5, s:get_scale())
  end)

  it("B36: permanent NaN never divides by 0; stops with a diagnosis when asked", function()
    local s, opt, p = setup({on_floor = "keep"})
    for _ = 1, 200 do iterate(s, opt, p, {nan, 1}) end
    assert.equal(2.0 ^ -126, s:get_scale())
    assert.is_true(iterate(s, opt, p, {2.0 ^ 100, 0}))
    assert.equal(2.0 ^ 100, values(p.grad)[1])
    s, opt, p = setup({init_scale = 8, max_consecutive_skips = 3})
    iterate(s, opt, p, {nan, 1})
    iterate(s, opt, p, {nan, 1})
    local e = failure(iterate, s, opt, p, {1, nan})
    assert.equal("ESTATE", e.code)
    assert.matches("3 iterations in a row", e.message)
    assert.matches("parameter 1", e.message)
    assert.is_true(iterate(s, opt, p, {1, 1}))          -- usable after
    assert.equal(0, s:stats().consecutive_skips)
  end)

  it("B37: raises at the floor when asked", function()
    local s, opt, p = setup({init_scale = 2, min_scale = 1, on_floor = "raise"})
    iterate(s, opt, p, {nan, 1})
    local e = failure(iterate, s, opt, p, {nan, 1})
    assert.equal("EVALUE", e.code)
    assert.matches("floor", e.message)
    assert.equal(1, s:get_scale())
  end)

  it("B59: hysteresis forgives, and the scale says what it is", function()
    local s, opt, p = setup({init_scale = 64, hysteresis = 2})
    iterate(s, opt, p, {inf, 1})
    assert.equal(64, s:get_scale())
    assert.equal(1, s:state_dict()._hysteresis_left)
    iterate(s, opt, p, {inf, 1})
    assert.equal(32, s:get_scale())
    iterate(s, opt, p, {1, 1})
    assert.equal(2, s:state_dict()._hysteresis_left)
  end)

  it("D11: values out of range are errors that name them", function()
    local function bad(options, text)
      local e = failure(amp.GradScaler, options)
      assert.equal("EVALUE", e.code)
      assert.matches(text, e.message)
    end
    bad({init_scale = 0}, "init_scale 0 ")
    bad({init_scale = inf}, "init_scale inf")
    bad({init_scale = nan}, "init_scale ")
    bad({min_scale = 0}, "min_scale 0 ")
    bad({max_scale = 2.0 ^ 128}, "max_scale")
    bad({min_scale = 4, max_scale = 2}, "max_scale 2")
    bad({init_scale = 1, min_scale = 2}, "init_scale 1 ")
    bad({growth_factor = 1}, "growth_factor 1 ")
    bad({backoff_factor = 1}, "backoff_factor 1 ")
    bad({backoff_factor = 0}, "backoff_factor 0 ")
    bad({growth_interval = 0}, "growth_interval 0 ")
    bad({hysteresis = 0}, "hysteresis 0 ")
    assert.matches("on_floor", failure(amp.GradScaler, {on_floor = "sink"}).message)
    assert.matches("unknown option \"scale\"", failure(amp.GradScaler, {scale = 1}).message)
    local s = amp.GradScaler{max_scale = 2.0 ^ 20}
    for _, v in ipairs {0, -1, inf, nan, 2.0 ^ 21} do assert.equal("EVALUE", failure(s.update, s, v).code) end
    assert.equal("EVALUE", failure(s.set_growth_factor, s, 0.5).code)
    assert.equal("EARG", failure(s.set_growth_factor, s, "2").code)
    assert.equal(65536, s:get_scale())
    assert.equal(2, s:get_growth_factor())
  end)
end)

describe("unscale", function()
  it("B39: parameters in f16 get f32 gradients, and train", function()
    local p = parameter({1, 2}, {dtype = "f16"})
    local s, opt = amp.GradScaler{init_scale = 2.0 ^ 16}, optim.SGD({p}, {lr = 1})
    p.grad = ampl.tensor({2.0 ^ -8, 2.0 ^ 14}, {dtype = "f16"})
    s:scale(ampl.ones({}))
    s:unscale_(opt)
    assert.same({2.0 ^ -24, 0.25}, values(p.grad))
    assert.is_true(s:step(opt))
    s:update()
    assert.equal("f16", p.dtype)
    assert.same({1, 1.75}, values(p))
    opt:zero_grad({set_to_none = false})
    s:update(1.0)
    backward(s, p, {0.5, 0.5})
    assert.is_true(s:step(opt))
    assert.same({0.5, 1.25}, values(p))
  end)

  it("takes bf16, f64 and transposed gradients", function()
    for _, dtype in ipairs {"bf16", "f64", "f32"} do
      local p = ampl.zeros({2, 3}, {dtype = dtype}):requires_grad_(true)
      local s, opt = amp.GradScaler{init_scale = 4}, optim.SGD({p}, {lr = 1})
      s:scale(ampl.ones({}))
      p.grad = ampl.tensor({{4.0, 8.0}, {12.0, 16.0}, {20.0, 24.0}}, {dtype = dtype}):t()
      s:unscale_(opt)
      assert.same({1, 3, 5, 2, 4, 6}, values(p.grad))
      s:step(opt)
      assert.same({-1, -3, -5, -2, -4, -6}, values(p))
    end
  end)

  it("finds an inf wherever it is, in sizes around the blocks", function()
    for _, n in ipairs {1, 7, 16, 17, 2048, 2049, 32768, 70001} do
      for _, at in ipairs {1, n // 2 + 1, n} do
        for _, bad in ipairs {inf, -inf, nan} do
          local p = ampl.zeros(n):requires_grad_(true)
          local s, opt = amp.GradScaler{init_scale = 2}, optim.SGD({p}, {lr = 1})
          s:scale(ampl.ones({}))
          p.grad = ampl.full({n}, 2.0)
          p.grad[at] = bad
          assert.is_false(s:step(opt))
          assert.equal(n > 1 and 1 or nil, n > 1 and p.grad[at == 1 and n or 1]:item() or nil)
        end
      end
    end
  end)

  it("B43: two optimizers, unscaled both, an update after each step", function()
    local a, b = parameter({1}), parameter({1})
    local s = amp.GradScaler{init_scale = 8}
    local A, B = optim.SGD({a}, {lr = 1}), optim.SGD({b}, {lr = 1})
    backward(s, a, {1})
    backward(s, b, {1})
    s:unscale_(A)
    s:unscale_(B)
    s:step(A)
    s:update()
    assert.is_true(s:step(B))                           -- not divided a second time
    s:update()
    assert.same({0, 0}, {a:item(), b:item()})
  end)

  it("B44: no gradient at all is a clean iteration without a step's effect", function()
    local s, opt, p = setup({init_scale = 8, growth_interval = 2})
    s:scale(ampl.ones({}))
    for _ = 1, 2 do
      assert.is_true(s:step(opt))
      s:update()
    end
    assert.equal(16, s:get_scale())
    assert.same({1, 2}, values(p))
  end)

  it("B45: says which call was out of order; update starts over without a step", function()
    local s, opt, p = setup({init_scale = 8})
    backward(s, p, {1, 1})
    s:unscale_(opt)
    local e = failure(s.unscale_, s, opt)
    assert.equal("ESTATE", e.code)
    assert.matches("unscale_ was called", e.message)
    s:update()
    opt:zero_grad()
    backward(s, p, {1, 1})
    s:unscale_(opt)
    assert.same({1, 1}, values(p.grad))
    s:step(opt)
    assert.matches("step was called", failure(s.step, s, opt).message)
    assert.matches("unscale_ comes before", failure(s.unscale_, s, opt).message)
    s:update()
    assert.matches("step%(optimizer%) first", failure(s.update, s).message)
  end)

  it("B47: an unscaled loss is noticed", function()
    local s, opt, p = setup({})
    p:sum():backward()
    for _, call in ipairs {"unscale_", "step"} do
      local e = failure(s[call], s, opt)
      assert.equal("ESTATE", e.code)
      assert.matches("no loss was ever scaled", e.message)
    end
    assert.same({1, 1}, values(p.grad))
  end)

  it("D06: a parameter of two optimizers is divided once", function()
    local a, b = parameter({1}), parameter({1})
    local s = amp.GradScaler{init_scale = 8}
    local A, B = optim.SGD({a, b}, {lr = 0}), optim.SGD({b}, {lr = 0})
    backward(s, a, {1})
    backward(s, b, {1})
    s:step(A)
    s:step(B)
    assert.equal(1, b.grad:item())
    s:update()
  end)

  it("D13: a new optimizer inherits nothing from one that died", function()
    local s, _, p = setup({init_scale = 8})
    for _ = 1, 20 do
      local opt = optim.SGD({p}, {lr = 0})
      p.grad = ampl.tensor({8.0, 8.0})
      s:scale(ampl.ones({}))
      s:unscale_(opt)
      opt = nil                                         -- luacheck: ignore 311
      collectgarbage()
    end
    s:update()
  end)

  it("takes any table with param_groups and step for an optimizer", function()
    local p = parameter({1, 2})
    local mine = {param_groups = {{params = {p}}}, steps = 0}
    function mine:step() self.steps = self.steps + 1; return "done" end
    local s = amp.GradScaler{init_scale = 8}
    backward(s, p, {1, 1})
    assert.same({true, "done"}, {s:step(mine)})
    s:update()
    p.grad = ampl.tensor({inf, 0})
    assert.same({false}, {s:step(mine)})
    assert.equal(1, mine.steps)
    assert.equal("EARG", failure(s.step, s, {}).code)
    assert.equal("EARG", failure(s.step, s, nil).code)
  end)
end)

describe("scale", function()
  it("B56, D15: takes any float loss of any rank, in f32 at least", function()
    local s = amp.GradScaler{}
    for dtype, want in pairs {f16 = "f32", bf16 = "f32", f32 = "f32", f64 = "f64"} do
      for _, shape in ipairs {{}, {1}, {2, 2}} do
        local y = s:scale(ampl.ones(shape, {dtype = dtype}))
        assert.equal(want, y.dtype)
        assert.same(shape, y.shape)
        for _, v in ipairs(values(y)) do assert.equal(65536, v) end
      end
    end
    assert.equal("EDTYPE", failure(s.scale, s, ampl.tensor(1)).code)
  end)

  it("takes lists, and lists of lists", function()
    local s = amp.GradScaler{init_scale = 4}
    local out = s:scale({ampl.ones({}), {ampl.full({}, 2.0)}})
    assert.same({4, 8}, {out[1]:item(), out[2][1]:item()})
  end)

  it("hands the gradient of the scale on to the loss", function()
    local s = amp.GradScaler{init_scale = 1024}
    local x = parameter({3})
    s:scale(x:to("f16"):sum()):backward()
    assert.equal(1024, x.grad:item())
  end)

  it("D14: a scale of one's own resets the growth tracker", function()
    local s, opt, p = setup({init_scale = 16, growth_interval = 3})
    iterate(s, opt, p, {1, 1})
    iterate(s, opt, p, {1, 1})
    assert.equal(2, s:get_growth_tracker())
    s:update(ampl.tensor(100))
    assert.same({100, 0}, {s:get_scale(), s:get_growth_tracker()})
    assert.equal("ESHAPE", failure(s.update, s, ampl.ones(2)).code)
    assert.equal("EARG", failure(s.update, s, "8").code)
  end)

  it("D08: a disabled scaler answers with its settings, steps always, and scales nothing", function()
    local s, opt, p = setup({enabled = false, init_scale = 64, growth_factor = 3})
    assert.same({1, 3, 0.5, 2000, 0}, {s:get_scale(), s:get_growth_factor(), s:get_backoff_factor(),
                                       s:get_growth_interval(), s:get_growth_tracker()})
    local x = ampl.ones(2)
    assert.is_true(x == s:scale(x))
    assert.is_true(iterate(s, opt, p, {inf, 1}))
    assert.same({}, s:state_dict())
    s:load_state_dict({})
    assert.equal(1, s:stats().taken)
    assert.same({true, 5}, {s:step(opt, function() return 5 end)})
  end)

  it("load_state_dict says what is missing or wrong, and changes nothing then", function()
    local s = amp.GradScaler{init_scale = 8}
    assert.matches("disabled", failure(s.load_state_dict, s, {}).message)
    assert.matches("no growth_factor", failure(s.load_state_dict, s, {scale = 4}).message)
    local t = amp.GradScaler{init_scale = 4}:state_dict()
    t.scale = 0
    assert.matches("scale 0 ", failure(s.load_state_dict, s, t).message)
    t.scale, t.growth_interval = 4, 1.5
    assert.matches("growth_interval must be an integer", failure(s.load_state_dict, s, t).message)
    assert.equal(8, s:get_scale())
  end)
end)

describe("closures", function()
  local function problem(overflows, options)
    local p = parameter({1, 1})
    local s = amp.GradScaler(options)
    local opt = optim.SGD({p}, {lr = 0.5})
    local calls, scales = 0, {}
    local function closure()
      calls = calls + 1
      scales[calls] = s:get_scale()
      opt:zero_grad()
      local c = calls <= overflows and inf or 1
      local loss = (p * ampl.tensor({c, 1.0})):sum()
      s:scale(loss):backward()
      return loss
    end
    return s, opt, p, closure, scales
  end

  it("run forward and the scaled backward; the result is theirs", function()
    local s, opt, p, closure = problem(0, {init_scale = 8})
    local taken, loss = s:step(opt, closure)
    s:update()
    assert.is_true(taken)
    assert.equal(2, loss:item())
    assert.same({0.5, 0.5}, values(p))
    assert.matches("step was called", failure(function()
      s:step(opt, closure)
      s:step(opt, closure)
    end).message)
  end)

  it("end the step as skipped when they overflow", function()
    local s, opt, p, closure = problem(1, {init_scale = 8})
    assert.is_false(s:step(opt, closure))
    s:update()
    assert.same({1, 1}, values(p))
    assert.equal(4, s:get_scale())
    assert.equal(1, s:stats().skipped)
    assert.is_true(s:step(opt, closure))
    s:update()
  end)

  it("run again at the lower scale with retry", function()
    local s, opt, p, closure, scales = problem(2, {init_scale = 8, retry = 3})
    assert.is_true(s:step(opt, closure))
    s:update()
    assert.same({8, 4, 2}, scales)
    assert.same({0.5, 0.5}, values(p))
    assert.same({2, 1, 0}, {s:get_scale(), s:stats().taken, s:stats().skipped})
    s, opt, p, closure, scales = problem(9, {init_scale = 8, retry = 1})
    assert.is_false(s:step(opt, closure))
    s:update()
    assert.same({8, 4}, scales)
    assert.same({2, 1}, {s:get_scale(), s:stats().skipped})
    assert.same({1, 1}, values(p))
  end)

  it("hand errors through unchanged", function()
    local s, opt = problem(0, {})
    assert.equal("boom", failure(s.step, s, opt, function() error("boom", 0) end))
    assert.equal("EARG", failure(s.step, s, opt, 3).code)
  end)

  it("work with LBFGS; an overflow on the way leaves the parameters as before", function()
    local p = parameter({3, -2})
    local s = amp.GradScaler{init_scale = 1024}
    local opt = optim.LBFGS({p}, {lr = 0.5, max_iter = 10})
    local bad, calls = false, 0
    local function closure()
      calls = calls + 1
      opt:zero_grad()
      local loss = ((p - ampl.tensor({1.0, 1.0})):square() * ampl.tensor({1.0, 4.0})):sum()
      if bad and calls == 3 then loss = loss * inf end
      s:scale(loss):backward()
      return loss
    end
    for _ = 1, 5 do
      assert.is_true(s:step(opt, closure))
      s:update()
    end
    near({1, 1}, values(p), 1e-3)
    ampl.no_grad(function() p:copy_(ampl.tensor({3.0, -2.0})) end)
    bad, calls = true, 0
    assert.is_false(s:step(opt, closure))
    s:update()
    assert.same({3, -2}, values(p))
  end)
end)

describe("around", function()
  it("B62: clipping leaves non-finite gradients alone and returns the norm", function()
    for _, bad in ipairs {inf, nan} do
      local p = parameter({0, 0})
      p.grad = ampl.tensor({bad, 1.0})
      local norm = nn.utils.clip_grad_norm_({p}, 1.0):item()
      assert.is_true(norm ~= norm or norm == inf)
      assert.equal(1, values(p.grad)[2])
      failure(nn.utils.clip_grad_norm_, {p}, 1.0, {error_if_nonfinite = true})
    end
    local p = parameter({0, 0})
    p.grad = ampl.tensor({3e20, 4e20})
    near({5}, {nn.utils.clip_grad_norm_({p}, 1.0):item() / 1e20}, 1e-6)
    near({0.6, 0.8}, values(p.grad), 1e-6)
  end)

  it("B63: the norm of f16 gradients is taken in f32", function()
    local p = parameter({0, 0}, {dtype = "f16"})
    p.grad = ampl.tensor({3000.0, 4000.0}, {dtype = "f16"})
    assert.equal(5000, nn.utils.clip_grad_norm_({p}, 1e9):item())
  end)

  it("B66: anomaly mode warns of an overflow that a scaler will skip, and stops without one", function()
    local s, opt, p = setup({init_scale = 8})
    local list = warnings_of(function()
      ampl.set_detect_anomaly(true)
      local ok, e = pcall(function()
        s:scale((p * nan):sum()):backward()
        assert.is_false(s:step(opt))
        s:update()
      end)
      ampl.set_detect_anomaly(false)
      assert.is_true(ok, tostring(e))
    end)
    assert.is_true(#list >= 1)
    ampl.set_detect_anomaly(true)
    local ok = pcall(function() (p * nan):sum():backward() end)
    ampl.set_detect_anomaly(false)
    assert.is_false(ok)
  end)

  it("B73: a scaler of scale 1 is a guard for f32 and bf16 runs", function()
    local s, opt, p = setup({init_scale = 1, min_scale = 1, max_scale = 1, on_floor = "keep"})
    assert.is_true(iterate(s, opt, p, {1, 1}))
    assert.is_false(iterate(s, opt, p, {nan, 1}))
    assert.equal(1, s:get_scale())
    assert.same({0.5, 1.5}, values(p))
  end)

  it("keeps memory where it was", function()
    local s, opt, p = setup({init_scale = 8})
    local function run()
      for i = 1, 20 do iterate(s, opt, p, {i % 5 == 0 and inf or 1, 1}) end
      opt:zero_grad()
      collectgarbage()
      collectgarbage()
      return ampl.memory()
    end
    local before, after = run(), run()
    assert.same({before.live, before.tensors, before.nodes}, {after.live, after.tensors, after.nodes})
  end)
end)

describe("Accumulator", function()
  local function net()
    ampl.manual_seed(5)
    local w = ampl.randn(3, 1):requires_grad_(true)
    return w, ampl.randn(8, 3), ampl.randn(8, 1)
  end

  local function loss_of(w, x, y) return (x:matmul(w) - y):square():mean() end

  -- One step on all rows, against micro-batches of the given sizes.
  local function compare(sizes, options, weighted)
    local w, x, y = net()
    local opt = optim.SGD({w}, {lr = 0.1})
    local want = loss_of(w, x, y)
    want:backward()
    if options.clip then nn.utils.clip_grad_norm_({w}, options.clip) end
    opt:step()
    local v = net()
    options.optimizer, options.steps = optim.SGD({v}, {lr = 0.1}), options.steps or #sizes
    local acc = amp.Accumulator(options)
    local at, stepped, loss = 1, nil, nil
    for i, n in ipairs(sizes) do
      stepped, loss = acc:backward(loss_of(v, x:narrow(1, at, n), y:narrow(1, at, n)), weighted and n or nil)
      if i < #sizes then assert.same({false}, {stepped, loss}) end
      at = at + n
    end
    if options.steps > #sizes then stepped, loss = acc:flush() end
    assert.is_true(stepped)
    near({want:item()}, {loss}, 1e-6)
    near(values(w), values(v), 1e-6)
    assert.same({false}, {acc:flush()})
  end

  it("equals one batch of all rows", function() compare({2, 2, 2, 2}, {}) end)
  it("equals it with weights, for micro-batches of different sizes", function() compare({1, 4, 3}, {}, true) end)
  it("equals it through a scaler", function() compare({2, 2, 2, 2}, {scaler = amp.GradScaler{init_scale = 256}}) end)
  it("equals it through a scaler with weights and clipping", function()
    compare({1, 4, 3}, {scaler = amp.GradScaler{init_scale = 256}, clip = 0.25}, true)
  end)
  it("equals it when a group is not full", function() compare({4, 4}, {steps = 3}) end)
  it("equals it when a group is not full, through a scaler", function()
    compare({4, 4}, {steps = 3, scaler = amp.GradScaler{init_scale = 256}})
  end)

  it("skips a group that overflows as a whole, and holds the scheduler", function()
    local w, x, y = net()
    local before = values(w)
    local opt, s = optim.SGD({w}, {lr = 0.1}), amp.GradScaler{init_scale = 8}
    local sched = optim.lr_scheduler.StepLR(opt, {step_size = 1, gamma = 0.5})
    local acc = amp.Accumulator{optimizer = opt, scaler = s, steps = 2, scheduler = sched}
    acc:backward(loss_of(w, x, y) * inf)
    local stepped, loss = acc:backward(loss_of(w, x, y))
    assert.is_false(stepped)
    assert.is_true(loss ~= loss or loss == inf)
    assert.same(before, values(w))
    assert.equal(0.1, opt.param_groups[1].lr)
    assert.equal(4, s:get_scale())
    acc:backward(loss_of(w, x, y))
    assert.is_true((acc:backward(loss_of(w, x, y))))
    assert.equal(0.05, opt.param_groups[1].lr)
  end)

  it("says what is wrong", function()
    local w = parameter({1})
    local opt = optim.SGD({w}, {lr = 1})
    assert.equal("EVALUE", failure(amp.Accumulator, {optimizer = opt, steps = 0}).code)
    assert.equal("EVALUE", failure(amp.Accumulator, {optimizer = opt, clip = -1}).code)
    assert.equal("EARG", failure(amp.Accumulator, {steps = 1}).code)
    local acc = amp.Accumulator{optimizer = opt, steps = 2}
    assert.equal("EVALUE", failure(acc.backward, acc, w:sum(), 0).code)
    assert.equal("EVALUE", failure(acc.backward, acc, w:sum(), "3").code)
  end)
end)

describe("precision", function()
  it("an f16 run with a scaler learns what the f32 run learns", function()
    local function train(dtype)
      ampl.manual_seed(11)
      local x = ampl.randn(64, 8)
      local y = x:matmul(ampl.randn(8, 4)):argmax(2)
      local model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
      local opt, s = optim.Adam(model, {lr = 0.01}), amp.GradScaler{enabled = dtype == "f16"}
      local loss
      for _ = 1, 60 do
        opt:zero_grad()
        loss = amp.autocast({enabled = dtype ~= "f32", dtype = dtype ~= "f32" and dtype or nil}, function()
          return F.cross_entropy(model(x), y)
        end)
        s:scale(loss):backward()
        s:step(opt)
        s:update()
      end
      return loss:item()
    end
    local f32 = train("f32")
    assert.is_true(f32 < 0.3)
    for _, dtype in ipairs {"f16", "bf16"} do
      local v = train(dtype)
      assert.is_true(math.abs(v - f32) < 0.1 * f32 + 0.01, ("%s: %g, f32: %g"):format(dtype, v, f32))
    end
  end)
end)
