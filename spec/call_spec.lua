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
end)
