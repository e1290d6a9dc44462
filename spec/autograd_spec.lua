-- Autograd: the walk, modes, hooks, views and in-place writes, functions, scopes.
local ampl = require "ampl"

local function leaf(t) return ampl.tensor(t, {requires_grad = true}) end

local function code_of(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  return type(e) == "table" and e.code or e, e
end

describe("backward", function()
  it("adds to the gradients of leaves, and frees the graph", function()
    local x = leaf {1.0, 2.0, 3.0}
    local y = (x * x):sum()
    y:backward()
    assert.are.same({2, 4, 6}, x.grad:totable())
    local code, e = code_of(y.backward, y)
    assert.are.equal("EGRAD", code)
    assert.is_truthy(e.message:find("retain_graph"))
    local z = (x * 2):sum()
    z:backward()
    assert.are.same({4, 6, 8}, x.grad:totable())
  end)

  it("keeps the graph with retain_graph, and differentiates itself with create_graph", function()
    local x = leaf {2.0}
    local y = (x * x * x):sum()
    y:backward({retain_graph = true})
    y:backward()
    assert.are.same({24}, x.grad:totable())
    local g = ampl.grad((x * x * x):sum(), x, {create_graph = true})
    assert.are.same({12}, g:detach():totable())
    assert.are.same({12}, ampl.grad(g:sum(), x):totable())
  end)

  it("walks a chain of 100,000 ops without recursion", function()
    local x = leaf {1.0}
    local y = x
    for _ = 1, 100000 do y = y + 1 end
    y:sum():backward()
    assert.are.same({1}, x.grad:totable())
    y = nil
    collectgarbage()
    collectgarbage()
    assert.is_nil(y)
  end)

  it("says what is wrong with a root or an input", function()
    local x, z = leaf {1.0, 2.0}, leaf {1.0}
    assert.are.equal("EGRAD", (code_of(function() (x * 2):backward() end)))
    assert.are.equal("EGRAD", (code_of(function() ampl.ones(1):backward() end)))
    assert.are.equal("ESHAPE", (code_of(function() (x * 2):backward(ampl.ones(3)) end)))
    assert.are.equal("EGRAD", (code_of(ampl.grad, (x * 2):sum(), z)))
    assert.is_nil((ampl.grad((x * 2):sum(), z, {allow_unused = true})))
    assert.are.equal("EARG", (code_of(function() x:sum():backward({keep = true}) end)))
  end)
end)

describe("modes", function()
  it("nest, leave in any order, and belong to their coroutine", function()
    local outer, inner = ampl.no_grad(), ampl.enable_grad()
    assert.is_true(ampl.is_grad_enabled())
    outer:close()
    assert.is_true(ampl.is_grad_enabled())
    inner:close()
    local co = coroutine.wrap(function()
      local _ <close> = ampl.no_grad()
      coroutine.yield(ampl.is_grad_enabled())
      return ampl.is_grad_enabled()
    end)
    assert.is_false(co())
    assert.is_true(ampl.is_grad_enabled())
    assert.is_false(co())
    assert.is_false(ampl.no_grad(ampl.is_grad_enabled))
    assert.is_false(pcall(ampl.no_grad, error, "x"))
    assert.is_true(ampl.is_grad_enabled())
  end)

  it("end a recursion without end soon", function()
    local function f() return ampl.no_grad(function() return f() end) end
    local before = os.clock()
    assert.is_false(pcall(f))
    assert.is_true(os.clock() - before < 20)
    assert.is_true(ampl.is_grad_enabled())
  end)
end)

describe("hooks", function()
  it("see and replace gradients, until they are removed", function()
    local x = leaf {1.0, 2.0}
    local seen
    local h = x:register_hook(function(g) seen = g:totable() return g * 10 end)
    x:sum():backward()
    assert.are.same({1, 1}, seen)
    assert.are.same({10, 10}, x.grad:totable())
    h:remove()
    x.grad = nil
    x:sum():backward()
    assert.are.same({1, 1}, x.grad:totable())
  end)

  it("raise their own error out of backward", function()
    local x, mine = leaf {1.0}, {}
    local y = x * 2
    y:register_hook(function() error(mine) end)
    local ok, e = pcall(function() y:sum():backward() end)
    assert.is_false(ok)
    assert.are.equal(mine, e)
    assert.are.same({2}, (x + x):detach():totable())
  end)
end)

describe("in-place writes", function()
  it("reach views that were made before them", function()
    for _, write in ipairs {function(b) b:mul_(5) end, function(b) b[1] = 10 end} do
      local a = leaf {1.0, 2.0, 3.0}
      local b = a * 1
      local w = b:view(3, 1)
      write(b)
      local expected = ampl.grad(b:clone():sum(), a, {retain_graph = true}):totable()
      w:sum():backward()
      assert.are.same(expected, a.grad:totable())
    end
  end)

  it("give a view, and its base, the graph of what is written", function()
    local a = leaf {1.0, 2.0, 3.0}
    local b = ampl.ones(3)
    local w = b:view(3, 1)
    b:mul_(a)
    assert.is_true(w.requires_grad)
    w:sum():backward()
    assert.are.same({1, 1, 1}, a.grad:totable())
    a.grad = nil
    b = ampl.ones(3)
    b:view(3, 1):mul_(a:view(3, 1))
    b:sum():backward()
    assert.are.same({1, 1, 1}, a.grad:totable())
  end)

  it("keep what backward reads of the target, and refuse what is lost", function()
    local a = leaf {1.0, 2.0}
    local b = a * 2
    b:mul_(a)
    b:sum():backward()
    assert.are.same({4, 8}, a.grad:totable())
    local c = a * 1
    local y = c * c
    c:add_(1)
    local code, e = code_of(function() y:sum():backward() end)
    assert.are.equal("EGRAD", code)
    assert.is_truthy(e.message:find("written in place"))
    assert.are.equal("EGRAD", (code_of(a.add_, a, 1)))
    ampl.no_grad(function() a:add_(1) end)
    assert.are.same({2, 3}, a:detach():totable())
  end)
end)

describe("Function", function()
  it("has a backward of its own, and gives saved tensors back", function()
    local square = ampl.Function {
      forward = function(ctx, x) ctx:save(x) return x * x end,
      backward = function(ctx, dy) return dy * ctx:saved() * 2 end,
    }
    local x = leaf {1.0, 3.0}
    square(x):sum():backward()
    assert.are.same({2, 6}, x.grad:totable())
    assert.is_true(ampl.gradcheck(square, {ampl.tensor({0.5, 2.0}, {dtype = "f64", requires_grad = true})}))
  end)

  it("refuses an output in ctx's fields", function()
    local f = ampl.Function {forward = function(ctx, x) ctx.y = x * 2 return ctx.y end, backward = function() end}
    assert.are.equal("EGRAD", (code_of(f, leaf {1.0})))
  end)
end)

describe("handles", function()
  it("hide their metatable, whose functions trust their arguments", function()
    assert.are.equal("string", type(getmetatable(ampl.ones(1))))
    local m = ampl.no_grad()
    assert.is_false(pcall(m.__gc, io.stdout))
    m:close()
  end)

  it("are dropped by a scope, but for its results", function()
    collectgarbage()
    local before = ampl.memory().tensors
    local inside
    local y = ampl.scope(function()
      inside = ampl.ones(3)
      return inside + 1
    end)
    assert.are.equal("tensor (freed)", tostring(inside))
    assert.are.same({2, 2, 2}, y:totable())
    assert.are.equal("EFREED", (code_of(inside.sum, inside)))
    y:free()
    collectgarbage()
    assert.is_true(ampl.memory().tensors <= before)
  end)
end)
