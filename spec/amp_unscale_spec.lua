-- What the gradient scaler remembers of gradients, and for how long; what it counts as not finite; counters past their
-- interval; a scaler that goes on from a loaded state.

local ampl = require "ampl"
local amp, nn, optim = ampl.amp, ampl.nn, ampl.optim
local inf, nan = math.huge, 0 / 0

local function values(x) return x:detach():to("f64"):reshape(-1):totable() end

local function parameter(list, dtype) return ampl.tensor(list, {dtype = dtype or "f32"}):requires_grad_(true) end

-- A scaler that has scaled something, an optimiser of lr 1 (or another) for the parameters.
local function setup(options, params, lr)
  local s = amp.GradScaler(options)
  s:scale(ampl.ones({}))
  return s, optim.SGD(params, {lr = lr or 1})
end

-- x := v, in place.
local function write(x, v) ampl.no_grad(function() x:copy_(ampl.tensor(v):to(x.dtype)) end) end

describe("a gradient written in place is a fresh one", function()
  -- Ways to bring the scaled gradient {v} into p.grad without giving p another tensor.
  local ways = {
    ["copy_"] = function(p, v) write(p.grad, {v}) end,
    ["zero_ and add_"] = function(p, v) ampl.no_grad(function() p.grad:zero_(); p.grad:add_(v) end) end,
    ["fill_ of a view"] = function(p, v) ampl.no_grad(function() p.grad:view(1, 1):fill_(v) end) end,
    ["an assignment to an element"] = function(p, v) p.grad[1] = v end,
    ["taking it away, writing, giving it back"] = function(p, v)
      local g = p.grad
      p.grad = nil
      write(g, {v})
      p.grad = g
    end,
    ["zero_grad in place, and backward"] = function(p, v, opt)
      opt:zero_grad({set_to_none = false});
      (p * v):sum():backward()
    end,
  }
  for name, way in pairs(ways) do
    for _, dtype in ipairs {"f32", "f64", "bf16", "f16"} do
      it("by " .. name .. ", " .. dtype, function()
        local p = parameter({0.0}, dtype)
        local s, opt = setup({init_scale = 8}, {p})
        p.grad = ampl.zeros(1, {dtype = dtype})
        for i = 1, 4 do
          way(p, 16.0, opt)
          if i % 2 == 0 then s:unscale_(opt) end
          assert.is_true(s:step(opt))
          s:update()
          assert.same({-2 * i}, values(p))
        end
      end)
    end
  end

  it("also when gradients share one block of memory", function()
    local a, b = parameter {0.0}, parameter {0.0}
    local block = ampl.zeros(2)
    a.grad, b.grad = block[{{1, 1}}], block[{{2, 2}}]
    local s, opt = setup({init_scale = 8}, {a, b})
    for i = 1, 3 do
      block:copy_(ampl.tensor {8.0, 16.0})
      assert.is_true(s:step(opt))
      s:update()
      assert.same({-i, -2 * i}, {a:item(), b:item()})
    end
  end)

  it("also when its last step was skipped", function()
    for name, way in pairs(ways) do
      local p = parameter {0.0}
      local s, opt = setup({init_scale = 8, backoff_factor = 0.5}, {p})
      p.grad = ampl.tensor {inf}
      assert.is_false(s:step(opt), name)
      s:update()
      way(p, 16.0, opt)
      assert.is_true(s:step(opt), name)
      s:update()
      assert.same({-4}, values(p), name)                -- the scale is 4 now
    end
  end)

  it("also when its step never came", function()
    local p = parameter {0.0}
    local s, opt = setup({init_scale = 8}, {p})
    p.grad = ampl.tensor {8.0}
    s:unscale_(opt)
    s:update()
    write(p.grad, {16.0})
    s:unscale_(opt)
    assert.same({2}, values(p.grad))
  end)
end)

describe("what is remembered of a gradient", function()
  it("ends with the step's iteration: used again, it is divided again", function()
    local p = parameter {0.0}
    local s, opt = setup({init_scale = 2}, {p})
    p.grad = ampl.tensor {8.0}
    for _, want in ipairs {-4, -6, -7} do
      s:step(opt)
      s:update()
      assert.equal(want, p:item())
    end
  end)

  it("lasts through clipping within the iteration: a shared parameter is divided once", function()
    local a, b = parameter {0.0}, parameter {0.0}
    local s = amp.GradScaler{init_scale = 8}
    s:scale(ampl.ones({}))
    local A, B = optim.SGD({a, b}, {lr = 1}), optim.SGD({b}, {lr = 1})
    a.grad, b.grad = ampl.tensor {8.0}, ampl.tensor {32.0}
    s:unscale_(A)
    nn.utils.clip_grad_value_({a, b}, 2)
    assert.is_true(s:step(A))
    assert.is_true(s:step(B))
    s:update()
    assert.same({-1, -4}, {a:item(), b:item()})
  end)

  it("lasts until the step of an optimizer that was unscaled, also when it was clipped", function()
    local a, b = parameter {0.0}, parameter {0.0}
    local s = amp.GradScaler{init_scale = 8}
    s:scale(ampl.ones({}))
    local A, B = optim.SGD({a}, {lr = 1}), optim.SGD({b}, {lr = 1})
    a.grad, b.grad = ampl.tensor {8.0}, ampl.tensor {32.0}
    s:unscale_(A)
    s:unscale_(B)
    nn.utils.clip_grad_value_({a, b}, 2)
    s:step(A)
    s:update()
    assert.is_true(s:step(B))
    s:update()
    assert.same({-1, -2}, {a:item(), b:item()})
  end)

  it("counts a gradient that two parameters share once", function()
    local a, b = parameter {0.0}, parameter {0.0}
    local s, opt = setup({init_scale = 8}, {a, b})
    local g = ampl.tensor {16.0}
    a.grad, b.grad = g, g
    for i = 1, 2 do
      write(g, {16.0})
      s:step(opt)
      s:update()
      assert.same({-2 * i, -2 * i}, {a:item(), b:item()})
    end
  end)

  it("holds no gradient and no parameter after the iteration", function()
    local s = amp.GradScaler{init_scale = 8}
    s:scale(ampl.ones({}))
    collectgarbage()
    collectgarbage()
    local before = ampl.memory().tensors
    do
      local p = parameter {0.0}
      p.grad = ampl.tensor {8.0}
      s:step(optim.SGD({p}, {lr = 1}))
      s:update()
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, ampl.memory().tensors)
  end)
end)

describe("not finite is what is not finite after the division", function()
  -- scale, scaled gradient, whether the step is taken
  local cases = {
    f32 = {{2 ^ -10, 3e38, false}, {2 ^ -10, -3e38, false}, {2 ^ -10, 3e35, true}, {0.5, 1.7e38, true},
           {0.5, 1.8e38, false}, {2 ^ -126, 8, false}, {2 ^ -126, 2 ^ -100, true}, {2, 3.4e38, true},
           {2 ^ -10, nan, false}, {2 ^ 20, inf, false}, {2 ^ 127, -inf, false}, {2 ^ 127, nan, false}},
    f64 = {{2 ^ -10, 1e306, false}, {2 ^ -10, 1e305, true}, {2 ^ -126, 1e300, false}, {2 ^ 100, inf, false}},
    -- 1.003 times the largest bf16 fits an f32, and rounds to an infinite bf16
    bf16 = {{1 / 1.003, 3.3895e38, false}, {0.5, 3e38, false}, {0.5, 1e38, true}, {2 ^ 10, nan, false}},
    -- gradients in f16 are divided in f32
    f16 = {{2 ^ -10, 65504, true}, {2 ^ -126, 65504, false}, {2 ^ -126, 2 ^ -24, true}, {2 ^ 10, inf, false}},
  }
  for dtype, list in pairs(cases) do
    it("in " .. dtype, function()
      for _, c in ipairs(list) do
        for _, n in ipairs {1, 3, 16, 67, 2049} do
          local p = ampl.zeros(n, {dtype = dtype}):requires_grad_(true)
          local s, opt = setup({init_scale = c[1]}, {p}, 0)
          p.grad = ampl.zeros(n, {dtype = dtype})
          p.grad[n] = c[2]
          local what = ("scale %g, gradient %g, %d elements"):format(c[1], c[2], n)
          assert.equal(c[3], s:step(opt), what)
          s:update()
          assert.equal(c[3] and 0 or 1, s:stats().skipped, what)
        end
      end
    end)
  end
end)

describe("counters past their interval act as at it", function()
  local function clean(s, opt, p, n)
    for _ = 1, n do
      p.grad = ampl.tensor {0.0}
      s:step(opt)
      s:update()
    end
  end

  local function overflow(s, opt, p)
    p.grad = ampl.tensor {inf}
    s:step(opt)
    s:update()
  end

  it("the growth tracker after set_growth_interval", function()
    local p = parameter {0.0}
    local s, opt = setup({init_scale = 4, growth_interval = 100}, {p})
    clean(s, opt, p, 5)
    assert.equal(5, s:get_growth_tracker())
    s:set_growth_interval(3)
    clean(s, opt, p, 1)
    assert.same({8, 0}, {s:get_scale(), s:get_growth_tracker()})
    clean(s, opt, p, 3)
    assert.same({16, 0}, {s:get_scale(), s:get_growth_tracker()})
  end)

  it("the growth tracker of a loaded state", function()
    for _, tracker in ipairs {2, 3, 1000, 2 ^ 31 - 1} do
      for _, first in ipairs {true, false} do
        local p = parameter {0.0}
        local s = amp.GradScaler{init_scale = 4}
        if first then s:scale(ampl.ones({})) end
        s:load_state_dict{scale = 16.0, growth_factor = 2.0, backoff_factor = 0.5, growth_interval = 2,
                          _growth_tracker = tracker // 1 | 0}
        clean(s, optim.SGD({p}, {lr = 1}), p, 1)
        assert.same({32, 0}, {s:get_scale(), s:get_growth_tracker()})
      end
    end
  end)

  it("the hysteresis of a state with more left", function()
    local a = amp.GradScaler{init_scale = 16, hysteresis = 5}
    local state = a:state_dict()
    assert.equal(5, state._hysteresis_left)
    for _, first in ipairs {true, false} do
      local p = parameter {0.0}
      local b = amp.GradScaler{init_scale = 16, hysteresis = 2}
      local opt = optim.SGD({p}, {lr = 1})
      if first then b:scale(ampl.ones({})) end
      b:load_state_dict(state)
      assert.equal(2, b:state_dict()._hysteresis_left)
      overflow(b, opt, p)
      assert.equal(16, b:get_scale())
      overflow(b, opt, p)
      assert.equal(8, b:get_scale())
      overflow(b, opt, p)
      assert.equal(4, b:get_scale())
    end
  end)

  it("max_consecutive_skips below the count of a loaded state", function()
    local p = parameter {0.0}
    local s, opt = setup({init_scale = 16, max_consecutive_skips = 3}, {p})
    local state = s:state_dict()
    state.consecutive_skips = 7
    s:load_state_dict(state)
    p.grad = ampl.tensor {inf}
    s:step(opt)
    local ok, e = pcall(s.update, s)
    assert.is_false(ok)
    assert.equal("ESTATE", e.code)
    assert.matches("8 iterations in a row", e.message)
    clean(s, opt, p, 1)
    assert.equal(0, s:stats().consecutive_skips)
  end)
end)

describe("a scaler with a loaded state", function()
  local state = {scale = 32.0, growth_factor = 2.0, backoff_factor = 0.25, growth_interval = 1, _growth_tracker = 0}

  for _, first in ipairs {"step", "unscale_"} do
    it("needs no loss before " .. first, function()
      local p = parameter {0.0}
      local s, opt = amp.GradScaler{}, optim.SGD({p}, {lr = 1})
      s:load_state_dict(state)
      p.grad = ampl.tensor {64.0}
      if first == "unscale_" then
        s:unscale_(opt)
        assert.same({2}, values(p.grad))
      end
      assert.is_true(s:step(opt))
      s:update()
      assert.same({-2, 64}, {p:item(), s:get_scale()})
      p.grad = ampl.tensor {nan}
      assert.is_false(s:step(opt))
      s:update()
      assert.equal(16, s:get_scale())
    end)
  end

  it("but one without says that no loss was scaled", function()
    local p = parameter {0.0}
    local s, opt = amp.GradScaler{}, optim.SGD({p}, {lr = 1})
    p.grad = ampl.tensor {64.0}
    local ok, e = pcall(s.step, s, opt)
    assert.is_false(ok)
    assert.matches("no loss was ever scaled", e.message)
  end)
end)
