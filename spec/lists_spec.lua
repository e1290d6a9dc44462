-- Lists of tensors and of numbers: a hole is an error that names the op and the entry, everywhere and in any region.

local ampl = require "ampl"
local raises = require "spec.support.raises"
local core = require "ampl.core"

-- Runs f plain, in an autocast region of either dtype, and without gradients.
local function everywhere(f)
  f()
  for _, dtype in ipairs{"bf16", "f16"} do ampl.amp.autocast({dtype = dtype}, f) end
  ampl.no_grad(f)
end

local function holes()
  local x = ampl.ones(1)
  return {{2, {x, nil, x}}, {1, {nil, x}}, {1, {false, x}}, {2, {x, false}}, {2, {[1] = x, [3] = x}}, {1, {[2] = x}},
          {1, {nil, nil, x}}, {2, {[1] = x, [1 << 40] = x}}}
end

describe("a hole in a list of tensors", function()
  it("is refused by every op whose record does not allow it", function()
    local n = 0
    for _, record in ipairs(ampl.ops()) do
      local list
      for k, a in ipairs(record.args) do if a.kind == "a list of tensors" then list = k end end
      if list == 1 then
        n = n + 1
        everywhere(function()
          for _, case in ipairs(holes()) do
            raises("EARG", {record.name, "entry " .. case[1] .. " of"}, function()
              return core.functional[record.name](case[2])
            end)
          end
        end)
      end
    end
    assert(n >= 2, "cat and stack at least")
  end)

  it("is refused where lists are no op's", function()
    local w = ampl.ones(1, {requires_grad = true})
    for _, case in ipairs(holes()) do
      raises("EARG", {"grad", "entry " .. case[1]}, function() return ampl.grad(case[2], {w}) end)
      raises("EARG", {"grad", "entry " .. case[1]}, function() return ampl.grad({w * 1}, case[2]) end)
    end
  end)

  it("is a dimension without an index for index and index_put", function()
    local i = ampl.tensor{2, 1}
    everywhere(function()
      local x = ampl.arange(4):reshape(2, 2):float()
      assert.same({{1, 0}, {3, 2}}, x:index({nil, i}):totable())
      assert.same({{1, 0}, {3, 2}}, x:index({[2] = i}):totable())
      assert.same({{1, 0}, {3, 2}}, x:index({false, i}):totable())
      x:index_put_({nil, i}, 7)
      assert.same({{7, 7}, {7, 7}}, x:totable())
    end)
  end)
end)

describe("a hole in a list of numbers", function()
  it("is refused", function()
    raises("EARG", {"zeros", "entry 2 of"}, function() return ampl.zeros({2, nil, 3}) end)
    raises("EARG", {"view", "entry 1 of"}, function() return ampl.zeros(6):view({[2] = 6}) end)
    raises("EARG", {"sum", "entry 2 of"}, function() return ampl.zeros(2, 2):sum({1, nil, 2}) end)
  end)
end)
