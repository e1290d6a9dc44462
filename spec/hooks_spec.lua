-- Hooks and Functions written in Lua, while backward runs: what they may change, return and raise.

local ampl = require "ampl"
local raises = require "spec.support.raises"

local function leaf(v) return ampl.tensor(v, {requires_grad = true}) end

describe("a hook, while the walk is at its tensor", function()
  it("removes itself", function()
    local w, n, h = leaf{1.}, 0, nil
    h = w:register_hook(function() n = n + 1; h:remove(); h:remove() end)
    local after = 0
    w:register_hook(function() after = after + 1 end)
    for _ = 1, 2 do (w * 2):sum():backward() end
    assert.equal(1, n)
    assert.equal(2, after)
    assert.same({4}, w.grad:totable())
  end)

  it("removes the next one, which then does not run, and those before", function()
    local w, log, hooks = leaf{1.}, {}, {}
    for i = 1, 4 do
      hooks[i] = w:register_hook(function()
        log[#log + 1] = i
        if i == 2 then for k = 1, 3 do hooks[k]:remove() end end
      end)
    end
    (w * 2):sum():backward()
    assert.same({1, 2, 4}, log);
    (w * 2):sum():backward()
    assert.same({1, 2, 4, 4}, log)
  end)

  it("adds one, which waits for the next walk, on leaves and inside the graph", function()
    for _, inner in ipairs{false, true} do
      local w, late = leaf{1.}, 0
      local y = inner and w * 3 or w
      y:register_hook(function() y:register_hook(function() late = late + 1 end) end)
      local z = (y * 2):sum()
      z:backward(nil, {retain_graph = true})
      assert.equal(0, late)
      z:backward()
      assert.equal(1, late)
    end
  end)

  it("runs a backward of its own through the same tensor", function()
    local w, depth = leaf{1.}, 0
    w:register_hook(function()
      if depth < 5 then
        depth = depth + 1
        ampl.enable_grad(function() (w * 10):sum():backward() end)
      end
    end);
    (w * 2):sum():backward()
    assert.same({52}, w.grad:totable())
  end)

  it("runs without its result when it was freed meanwhile", function()
    local w = leaf{1.}
    local y = w * 3
    local z = (y * 2):sum()
    y:register_hook(function() y:free(); z:free(); collectgarbage() end)
    z:backward()
    assert.same({6}, w.grad:totable())
  end)
end)

describe("what a hook returns", function()
  it("keeps the gradient's shape and dtype", function()
    for _, case in ipairs{
      {function(g) return g:half() end, "f16 {2}"}, {function(g) return g:double() end, "f64 {2}"},
      {function(g) return g:sum() end, "f32 {}"}, {function(g) return g:reshape(1, 2) end, "f32 {1, 2}"},
      {function() return ampl.tensor{1, 2} end, "i64 {2}"},
    } do
      for _, inner in ipairs{false, true} do
        local w = leaf{1., 2.}
        local y = inner and w * 3 or w
        y:register_hook(case[1])
        raises("EGRAD", {"backward", "hook", case[2], "f32 {2}"}, function() (y * 2):sum():backward() end)
        assert.is_nil(w.grad)
      end
    end
  end)

  it("replaces the gradient, also for the hooks behind", function()
    local w, seen = leaf{1., 2.}, nil
    w:register_hook(function(g) return g * 10 end)
    w:register_hook(function(g) seen = g:totable() end);
    (w * 2):sum():backward()
    assert.same({20, 20}, seen)
    assert.same({20, 20}, w.grad:totable())
  end)
end)

describe("an error in a callback", function()
  local function memory() collectgarbage(); collectgarbage(); return ampl.memory() end

  it("comes out as it was raised, and the engine is as before", function()
    local before = memory()
    do
      local thing = {}
      for _ = 1, 3 do
        local w = leaf{1.}
        w:register_hook(function() error(thing) end)
        local ok, e = pcall(function() (w * 2):sum():backward() end)
        assert.is_false(ok)
        assert.equal(thing, e)
        local f = ampl.Function{forward = function(_, x) return x * 2 end, backward = function() error(thing) end}
        ok, e = pcall(function() f(w * 3):sum():backward() end)
        assert.is_false(ok)
        assert.equal(thing, e)
      end
    end
    local after = memory()
    assert.equal(before.tensors, after.tensors)
    assert.equal(before.nodes, after.nodes)
    assert.is_true(ampl.is_grad_enabled())
  end)

  it("is clean when it is a yield", function()
    local w = leaf{1.}
    w:register_hook(function() coroutine.yield() end)
    local f = ampl.Function{forward = function(_, x) return x * 2 end, backward = function() coroutine.yield() end}
    for _, y in ipairs{w * 2, f(w)} do
      local ok, e = coroutine.resume(coroutine.create(function() y:sum():backward() end))
      assert.is_false(ok)
      assert(tostring(e):find("yield", 1, true), tostring(e))
    end
    assert.equal(2, (ampl.ones(1) + 1):item())
  end)
end)

describe("a Function", function()
  it("may return one tensor twice", function()
    collectgarbage(); collectgarbage()
    local nodes = ampl.memory().nodes
    do
      local w = leaf{1., 2.}
      local f = ampl.Function{
        forward = function(_, x) local y = x * 2; return y, y end,
        backward = function(_, a, b) return (a and a * 2 or 0) + (b and b * 2 or 0) end,
      }
      local y, z = f(w);
      (y * 1 + z * 10):sum():backward()
      assert.same({22, 22}, w.grad:totable())
    end
    collectgarbage(); collectgarbage()
    assert.equal(nodes, ampl.memory().nodes)
  end)

  it("may call itself and other Functions", function()
    local f
    f = ampl.Function{
      forward = function(ctx, x, n) ctx.n = n; return n == 0 and x * 1 or f(x, n - 1) * 2 end,
      backward = function(ctx, g) return g * 2 ^ ctx.n end,
    }
    local w = leaf{1.}
    f(w, 6):backward()
    assert.same({64}, w.grad:totable())
  end)
end)
