-- The cache of weight casts: a cast may first be made where no graph is wanted, and be asked for with one later, in the
-- same region.  The gradient arrives all the same, and cache_stats counts what was cast.

local ampl = require "ampl"
local amp, F = ampl.amp, ampl.nn.functional

local x = ampl.tensor {{1.0, 2.0, 3.0}}

local function weight() return ampl.tensor({{0.5, 1.0, 1.5}}, {requires_grad = true}) end
local function use(w) return F.linear(x, w) end

-- What happens first to the weight; then how many casts are cached in all, and how often one is found again, by the use
-- that follows.
local firsts = {
  ["nothing"] = {function() end, 1, 0},
  ["no_grad"] = {function(w) ampl.no_grad(use, w) end, 1, 1},
  ["inference_mode"] = {function(w) ampl.inference_mode(use, w) end, 1, 1},
  ["enable_grad in inference_mode"] = {function(w)
    ampl.inference_mode(function() ampl.enable_grad(use, w) end)
  end, 1, 1},
  ["no_grad around a region"] = {function(w)
    ampl.no_grad(function() amp.autocast({dtype = "f16"}, use, w) end)
  end, 1, 1},
  ["no_grad in a region"] = {function(w)
    amp.autocast({dtype = "f16"}, function() ampl.no_grad(use, w) end)
  end, 1, 1},
  ["inference_mode around a region"] = {function(w)
    ampl.inference_mode(function() amp.autocast({dtype = "f16"}, use, w) end)
  end, 1, 1},
  ["a detached alias"] = {function(w) use(w:detach()) end, 1, 0},
  ["frozen, and thawed"] = {function(w)
    w:requires_grad_(false)
    use(w)
    w:requires_grad_(true)
  end, 1, 0},
  ["used, frozen, and thawed"] = {function(w)
    use(w)
    w:requires_grad_(false)
    use(w)
    w:requires_grad_(true)
  end, 1, 1},
  ["a disabled region"] = {function(w) amp.autocast({enabled = false}, use, w) end, 1, 0},
  ["enabled again in a disabled region"] = {function(w)
    amp.autocast({enabled = false}, function()
      ampl.no_grad(function() amp.autocast({dtype = "f16"}, use, w) end)
    end)
  end, 1, 1},
  ["another dtype"] = {function(w)
    ampl.no_grad(function() amp.autocast({dtype = "bf16"}, use, w) end)
  end, 2, 0},
  ["no cache"] = {function(w) amp.autocast({cache_enabled = false}, use, w) end, 1, 0},
  ["a Function's forward"] = {function(w)
    local f = ampl.Function {forward = function(_, v) return use(v) end, backward = function() end}
    f(w)
  end, 1, 1},
  ["a Function's backward"] = {function(w)
    local f = ampl.Function {forward = function(_, a) return a * 2 end, backward = function(_, dy)
      amp.autocast({dtype = "f16"}, use, w)
      return dy * 2
    end}
    f(ampl.tensor({1.0}, {requires_grad = true})):sum():backward()
  end, 1, 1},
  ["a hook"] = {function(w)
    local v = ampl.tensor({1.0}, {requires_grad = true})
    v:register_hook(function() amp.autocast({dtype = "f16"}, use, w) end);
    (v * 2):sum():backward()
  end, 1, 1},
  ["backward with create_graph"] = {function(w)
    local loss = use(w):float():square():sum()
    local g = ampl.grad(loss, w, {create_graph = true})
    g:square():sum()
  end, 1, 1},
  ["written in place under no_grad"] = {function(w)
    ampl.no_grad(function()
      use(w)
      w:mul_(2)
      w:div_(2)
    end)
  end, 2, 0},
  ["written through a detached alias"] = {function(w)
    ampl.no_grad(use, w)
    w:detach():mul_(1)
  end, 2, 0},
  ["copied into under inference_mode"] = {function(w)
    ampl.inference_mode(function()
      use(w)
      w:copy_(w:clone())
    end)
  end, 2, 0},
  ["cleared"] = {function(w)
    ampl.no_grad(use, w)
    amp.clear_autocast_cache()
  end, 2, 0},
  ["another coroutine"] = {function(w)
    coroutine.wrap(function()
      amp.autocast({dtype = "f16"}, function() ampl.no_grad(use, w) end)
    end)()
  end, 2, 0},
  ["an error"] = {function(w)
    pcall(ampl.no_grad, function()
      use(w)
      error("boom")
    end)
  end, 1, 1},
}

describe("a weight's cast that was first made by", function()
  for name, case in pairs(firsts) do
    it(name .. " has its graph when that is wanted", function()
      local w = weight()
      local before = amp.cache_stats()
      amp.autocast({dtype = "f16"}, function()
        case[1](w)
        local y = use(w)
        assert.equal("f16", y.dtype)
        assert.equal(7, y:item())
        assert.equal(1, amp.cache_stats().entries - (name == "another dtype" and 1 or 0))
        y:sum():backward()
      end)
      local after = amp.cache_stats()
      assert.equal("f32", w.grad.dtype)
      assert.same({{1, 2, 3}}, w.grad:totable())
      assert.same({case[2], case[3]}, {after.casts - before.casts, after.hits - before.hits})
      assert.same({0, 0}, {after.entries, after.bytes})
    end)
  end
end)

describe("the cache", function()
  it("gives each dtype its cast, and both their gradients", function()
    local w = weight()
    amp.autocast({dtype = "f16"}, function()
      for _ = 1, 3 do
        use(w):sum():backward()
        amp.autocast({dtype = "bf16"}, function()
          local y = use(w)
          assert.equal("bf16", y.dtype)
          y:sum():backward()
        end)
      end
      local s = amp.cache_stats()
      assert.same({2, 2 * 3 * 2}, {s.entries, s.bytes})
    end)
    assert.same({{6, 12, 18}}, w.grad:totable())
  end)

  it("sees a new value after a write, with its gradient", function()
    local w = weight()
    amp.autocast({dtype = "f16"}, function()
      for i = 1, 4 do
        ampl.no_grad(function() w:fill_(i) end)
        local y = use(w)
        assert.equal(6 * i, y:item())
        y:square():sum():backward()
        assert.equal(1, amp.cache_stats().entries)
      end
    end)
    -- 2 * y * x, y = 6 i
    assert.same({{120, 240, 360}}, w.grad:totable())
  end)

  it("gives second derivatives through a cast made without a graph", function()
    local w = weight()
    amp.autocast({dtype = "f16"}, function()
      ampl.inference_mode(use, w)
      local y = use(w):float()
      local g = ampl.grad((y * y):sum(), w, {create_graph = true})
      assert.same({{14, 28, 42}}, g:detach():totable())
      g:sum():backward()
    end)
    assert.same({{12, 24, 36}}, w.grad:totable())       -- 2 * x * sum(x)
  end)

  it("hands no graph to those who want none", function()
    local w = weight()
    amp.autocast({dtype = "f16"}, function()
      use(w)
      assert.is_false(ampl.no_grad(use, w).requires_grad)
      assert.is_false(ampl.inference_mode(use, w).requires_grad)
      w:requires_grad_(false)
      assert.is_false(use(w).requires_grad)
    end)
  end)

  it("counts what all coroutines hold, and lets go of what a dead one held", function()
    local w = weight()
    local before = amp.cache_stats()
    local co = coroutine.create(function()
      local _ <close> = amp.autocast{dtype = "f16"}
      use(w)
      coroutine.yield()
    end)
    assert.is_true(coroutine.resume(co))
    assert.same({before.casts + 1, 1}, {amp.cache_stats().casts, amp.cache_stats().entries})
    amp.autocast({dtype = "f16"}, use, w)
    assert.same({before.casts + 2, 1}, {amp.cache_stats().casts, amp.cache_stats().entries})
    coroutine.close(co)
    assert.same({0, 0}, {amp.cache_stats().entries, amp.cache_stats().bytes})
  end)
end)
