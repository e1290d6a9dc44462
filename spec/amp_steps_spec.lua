-- What a skipped step leaves alone, where backward runs, and what anomaly mode finds.

local ampl = require "ampl"
local amp, optim = ampl.amp, ampl.optim
local inf = math.huge

describe("a skipped step", function()
  it("B55: counts for no iteration: step counts, moments and bias correction are those of the steps taken", function()
    local function run(bad)
      local p = ampl.tensor({1.0, -2.0}, {requires_grad = true})
      local opt, s = optim.Adam({p}, {lr = 0.125}), amp.GradScaler{init_scale = 1024, growth_interval = 1000}
      for i = 1, 4 do
        if bad and i % 2 == 0 then
          p.grad = nil
          s:scale((p * inf):sum()):backward()
          assert.is_false(s:step(opt))
          s:update()
        end
        opt:zero_grad()
        s:scale((p * p * i):sum()):backward()
        assert.is_true(s:step(opt))
        s:update()
      end
      local state = opt:state_dict().state
      local step = state[1] and state[1].step or state[0].step
      return p:detach():totable(), type(step) == "userdata" and step:item() or step, s:stats()
    end
    local want, steps = run(false)
    local got, same, stats = run(true)
    assert.same(want, got)
    assert.same({4, 4}, {steps, same})
    assert.same({4, 2}, {stats.taken, stats.skipped})
  end)
end)

describe("backward", function()
  it("B27: outside the region, in it, and in another gives the same bits", function()
    ampl.manual_seed(3)
    local x, start = ampl.randn(4, 8), ampl.randn(8, 8)
    local function gradient(walk)
      local w = start:clone():requires_grad_(true)
      local loss
      amp.autocast({dtype = "bf16"}, function()
        loss = x:matmul(w):tanh():matmul(w):square():sum()
        if walk == "inside" then loss:backward() end
      end)
      if walk == "outside" then loss:backward() end
      if walk == "another" then amp.autocast({dtype = "f16"}, function() loss:backward() end) end
      return w.grad:totable()
    end
    local want = gradient("outside")
    assert.same(want, gradient("inside"))
    assert.same(want, gradient("another"))
  end)
end)

describe("anomaly mode", function()
  it("B67: finds an inf when asked, and names the op, the place and the value", function()
    local function failure(options)
      local x = ampl.tensor({1.0, 0.0}, {requires_grad = true})
      ampl.set_detect_anomaly(true, options)
      local ok, e = pcall(function() x:log():sum():backward() end)
      ampl.set_detect_anomaly(false)
      return not ok and e or nil
    end
    assert.is_nil(failure({}))
    local e = failure({check_inf = true})
    assert.matches("log", e.message)
    assert.matches("inf", e.message)
    assert.matches("amp_steps_spec%.lua:%d+", e.message)
  end)
end)
