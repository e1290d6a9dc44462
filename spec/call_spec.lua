-- What every call of an op goes through, at its edges: casts that are made twice, an interruption before it.

local ampl = require "ampl"

describe("a call", function()
  it("casts operands for autocast and again for a wider neighbour, in lists of any length", function()
    for _, n in ipairs {3, 16, 17, 40, 300} do
      local list = {}
      for i = 1, n do list[i] = ampl.full({2}, i, {dtype = i == n and "f64" or i % 2 == 0 and "f16" or "f32"}) end
      local y = ampl.amp.autocast({dtype = "bf16"}, function() return ampl.cat(list, 1) end)
      assert.equal("f64", y.dtype)
      assert.equal(n * (n + 1), y:sum():item())
    end
  end)

  -- y = f(x) in place, of x = 2 w at w = (1, 3), where the other operand lies in x, too: the gradient of y's sum
  it("in place with itself as the other operand has the right gradient, and leaves no graph", function()
    local function nodes()
      collectgarbage()
      collectgarbage()
      return ampl.memory().nodes
    end
    local cases = {
      {{8, 24}, function(x) x:mul_(x) end},                     -- 4 w^2
      {{20, 4}, function(x) x:mul_(x:select(1, 1)) end},        -- 4 w1^2 + 4 w1 w2
      {{12, 4}, function(x) x:select(1, 2):mul_(x:select(1, 1)) end, sum = 2},  -- the second entry alone: 4 w1 w2
      {{0, 0}, function(x) x:div_(x) end},
      {{10, 26}, function(x) x:addcmul_(x, x) end},             -- 2 w + 4 w^2
    }
    for _, case in ipairs(cases) do
      local before = nodes()
      do
        local w = ampl.tensor {1., 3.}
        w.requires_grad = true
        local x = w * 2
        case[2](x)
        local y = case.sum and x:select(1, case.sum) or x:sum()
        y:backward()
        assert.same(case[1], w.grad:totable())
      end
      assert.equal(before, nodes())
    end
  end)
end)
