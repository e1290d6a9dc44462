-- gradcheck and gradgradcheck find wrong gradients, and only those.

local ampl = require "ampl"

local function leaf(...) return ampl.tensor(..., {dtype = "f64", requires_grad = true}) end

-- x ^ 2 with a gradient that is off by `factor`.
local function square(factor)
  local f = ampl.Function {
    forward = function(ctx, x)
      ctx:save(x)
      return x * x
    end,
    backward = function(ctx, dy) return dy * ctx:saved() * (2 * factor) end,
  }
  return function(x) return f(x) end
end

describe("gradcheck", function()
  it("accepts right gradients", function()
    local x, y = leaf {{0.5, -1.25}, {2, 0.75}}, leaf {1.5, -0.5}
    assert.is_true(ampl.gradcheck(function(a, b) return a * b, (a * a):sum() end, {x, y}))
    assert.is_true(ampl.gradcheck(function(a) return a:exp() end, x))
    assert.is_true(ampl.gradcheck(square(1), {x}))
  end)

  it("finds a wrong gradient and says where", function()
    local x = leaf {0.5, -1.25}
    local ok, e = pcall(ampl.gradcheck, square(1.01), {x})
    assert.is_false(ok)
    assert.equal("EGRAD", e.code)
    assert(e.message:find("input 1, element {1}", 1, true), e.message)
    local verdict, why = ampl.gradcheck(square(-1), {x}, {raise_exception = false})
    assert.is_false(verdict)
    assert(why:find("differences give", 1, true))
  end)

  it("finds a gradient that is missing", function()
    local x, y = leaf {0.5}, leaf {0.25}
    assert.is_false((ampl.gradcheck(function(a, b) return a * b:detach() end, {x, y}, {raise_exception = false})))
    assert.is_false((ampl.gradcheck(function(a) return a:detach() end, {x}, {raise_exception = false})))
  end)

  it("leaves inputs, gradients and the random stream as they were", function()
    local x = leaf {0.5, -1.25}
    ampl.manual_seed(3)
    local state = ampl.get_rng_state()
    ampl.gradcheck(function(a) return a * ampl.rand(2, {dtype = "f64"}) end, {x})
    assert.same({0.5, -1.25}, x:totable())
    assert.is_nil(x.grad)
    ampl.set_rng_state(state)
  end)

  it("refuses f32 without a larger eps, and unknown options", function()
    local x = ampl.tensor({0.5}, {requires_grad = true})
    local ok, e = pcall(ampl.gradcheck, function(a) return a * a end, {x})
    assert.is_false(ok)
    assert.equal("EDTYPE", e.code)
    assert.is_true(ampl.gradcheck(function(a) return a * a end, {x}, {eps = 1e-2, atol = 1e-2}))
    ok, e = pcall(ampl.gradcheck, function(a) return a end, {x}, {epsilon = 1})
    assert.is_false(ok)
    assert.equal("EARG", e.code)
  end)
end)

describe("gradgradcheck", function()
  it("accepts right gradients of gradients", function()
    local x, y = leaf {0.5, -1.25}, leaf {1.5, -0.5}
    assert.is_true(ampl.gradgradcheck(function(a, b) return a * a * b:exp() end, {x, y}))
    assert.is_true(ampl.gradgradcheck(function(a) return a * 2 end, {x}))
  end)

  it("finds wrong ones", function()
    local x = leaf {0.5, -1.25}
    local wrong = ampl.Function {       -- the gradient is right, but treats a factor as constant
      forward = function(ctx, a)
        ctx:save(a)
        return a * a * a
      end,
      backward = function(ctx, dy)
        local a = ctx:saved()
        return dy * a * a:detach() * 3
      end,
    }
    assert.is_true(ampl.gradcheck(function(a) return wrong(a) end, {x}))
    assert.is_false((ampl.gradgradcheck(function(a) return wrong(a) end, {x}, {raise_exception = false})))
  end)
end)
