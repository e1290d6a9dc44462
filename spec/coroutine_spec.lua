-- Coroutines: modes, scopes, graphs and hooks that belong to one, also to one that is gone.

local ampl = require "ampl"
local amp = ampl.amp

local function leaf(v) return ampl.tensor(v, {requires_grad = true}) end

-- Many coroutines that come and go: addresses of dead ones are used again.
local function churn(n)
  for _ = 1, n or 50 do coroutine.wrap(function() return ampl.ones(3):add(1) end)() end
end

local function settle() collectgarbage(); collectgarbage(); churn() end

describe("a coroutine that is gone", function()
  it("leaves its graph, Functions and hooks to others", function()
    for _ = 1, 20 do
      local seen = 0
      local w, y = coroutine.wrap(function()
        local f = ampl.Function{
          forward = function(ctx, x) ctx:save(x); return x * 2 end,
          backward = function(ctx, g) return g * 2 * ctx:saved():ge(0) end,
        }
        local w = leaf{1., 2.}
        w:register_hook(function() seen = seen + 1 end)
        return w, f(w):sum()
      end)()
      settle()
      coroutine.wrap(function() y:backward() end)()
      assert.same({2, 2}, w.grad:totable())
      assert.equal(1, seen)
    end
  end)

  it("takes its modes along, however it ended", function()
    ampl.on_warning(function() end)
    local enters = {
      function() return ampl.no_grad() end, function() return ampl.inference_mode() end,
      function() return amp.autocast{dtype = "bf16"} end,
    }
    for _, enter in ipairs(enters) do
      for _, finish in ipairs{function() end, function() error("x") end, coroutine.yield} do
        local kept
        pcall(coroutine.wrap(function()
          kept = enter()
          finish()
        end))
        settle()
        assert.is_true(ampl.is_grad_enabled())
        assert.is_false(ampl.is_inference_mode_enabled())
        assert.is_false(amp.is_autocast_enabled())
        coroutine.wrap(function()
          assert.is_true(ampl.is_grad_enabled())
          kept:close()
          kept:close()
          assert.is_true(ampl.is_grad_enabled())
        end)()
      end
    end
    ampl.on_warning(nil)
  end)

  it("leaves what its scopes hold to the collector, and their objects harmless", function()
    ampl.on_warning(function() end)
    local s, x
    coroutine.wrap(function()
      s = ampl.scope()
      x = ampl.ones(3)
    end)()
    settle()
    s:close()
    s:close()
    settle()
    local ok, e = pcall(function() return x:sum():item() end)
    assert(ok and e == 3 or not ok and e.code == "EFREED", tostring(e))
    ampl.on_warning(nil)
  end)
end)

describe("a scope", function()
  it("ends with what failed or was freed inside it", function()
    local s = ampl.scope()
    local x = ampl.ones(3)
    pcall(function() return x:sum(7) end)
    x:free()
    local y = ampl.ones(2)
    s:close()
    assert.equal("tensor (freed)", tostring(y))
  end)
end)

describe("coroutines side by side", function()
  it("have modes of their own, whichever ran last", function()
    local function worker(dtype, grad)
      return coroutine.wrap(function()
        local _ <close> = amp.autocast{dtype = dtype}
        local _ <close> = grad and ampl.enable_grad() or ampl.no_grad()
        while true do
          assert.equal(dtype, ampl.ones(2, 2):matmul(ampl.ones(2, 2)).dtype)
          assert.equal(grad, ampl.is_grad_enabled())
          coroutine.yield()
        end
      end)
    end
    local a, b = worker("bf16", false), worker("f16", true)
    for _ = 1, 5 do
      a(); b(); b(); a()
      assert.equal("f32", ampl.ones(2, 2):matmul(ampl.ones(2, 2)).dtype)
      assert.is_true(ampl.is_grad_enabled())
      churn(5)
    end
  end)

  it("may close each other's modes and scopes", function()
    local mode, scope, x
    local co = coroutine.create(function()
      mode, scope = ampl.no_grad(), ampl.scope()
      x = ampl.ones(2)
      coroutine.yield()
      assert.is_true(ampl.is_grad_enabled())
      coroutine.yield()
    end)
    assert(coroutine.resume(co))
    mode:close()
    scope:close()
    assert.equal("tensor (freed)", tostring(x))
    assert(coroutine.resume(co))
    assert.is_true(coroutine.close(co))
  end)
end)

describe("a hook that resumes coroutines", function()
  it("finds the walk as it left it", function()
    local w = leaf{1., 2.}
    local inner = coroutine.wrap(function()
      local _ <close> = amp.autocast{dtype = "bf16"}
      while true do coroutine.yield(ampl.ones(2, 2):matmul(ampl.ones(2, 2))) end
    end)
    w:register_hook(function(g)
      for _ = 1, 3 do assert.equal("bf16", inner().dtype) end
      settle()
      assert.is_false(ampl.is_grad_enabled())
      return g * 2
    end);
    (w * 3):sum():backward()
    assert.same({6, 6}, w.grad:totable())
    assert.is_true(ampl.is_grad_enabled())
    local ok, e = pcall(function() return ampl.zeros(2)[5] end)
    assert(not ok and e.message:find("1 to 2", 1, true), tostring(e))
  end)
end)
