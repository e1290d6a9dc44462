-- Attention's kernels, block by block, against the same attention composed in f64; sizes round the blocks of 128.

local ampl = require "ampl"

local TOLERANCE = {f32 = 3e-6, bf16 = 2e-2, f16 = 3e-3}

local function error_of(got, want)
  return (got:to("f64") - want):abs():max():item() / want:abs():max():item()
end

-- Result and gradients of q, k, v and a float mask, computed in dtype
local function attend(t, dtype, options)
  local o, leaves = {}, {}
  for name, value in pairs(options) do o[name] = value end
  for i, name in ipairs {"q", "k", "v"} do
    leaves[i] = t[name]:to(dtype):detach()
    leaves[i].requires_grad = true
  end
  if o.mask and o.mask.dtype ~= "bool" then
    o.mask = o.mask:to(dtype == "f64" and "f64" or "f32"):detach()
    o.mask.requires_grad = true
    leaves[4] = o.mask
  end
  ampl.manual_seed(11)
  local y = ampl.scaled_dot_product_attention(leaves[1], leaves[2], leaves[3], o)
  y:backward(t.dy:to(dtype))
  local results = {y:detach()}
  for _, leaf in ipairs(leaves) do results[#results + 1] = leaf.grad end
  return results
end

-- size: batch, heads of q, heads of k, rows, columns, width of q, width of v
local cases = {
  {"plain", {2, 3, 3, 200, 300, 32, 32}},
  {"causal", {2, 3, 3, 260, 260, 64, 64}, {is_causal = true}},
  {"causal, more columns", {1, 2, 2, 150, 400, 17, 9}, {is_causal = true}},
  {"causal, more rows", {1, 2, 2, 400, 150, 17, 9}, {is_causal = true}},
  {"shared heads", {2, 6, 2, 130, 129, 16, 24}, {enable_gqa = true}},
  {"shared heads, causal", {1, 4, 1, 130, 257, 16, 24}, {enable_gqa = true, is_causal = true}},
  {"float mask", {2, 3, 3, 100, 140, 8, 8}, function() return {mask = ampl.randn {100, 140}} end},
  {"mask of keys", {2, 3, 3, 100, 140, 8, 8}, function() return {mask = ampl.rand {2, 1, 1, 140}:gt(0.5)} end},
  {"rows that look nowhere", {1, 3, 3, 64, 140, 8, 8}, function() return {mask = ampl.rand {64, 140}:gt(0.97)} end},
  {"dropout", {2, 3, 3, 140, 300, 32, 32}, {dropout_p = 0.3}},
  {"dropout, causal", {2, 3, 3, 70, 70, 32, 32}, {dropout_p = 0.3, is_causal = true}},
  {"scale", {2, 1, 1, 5, 7, 1, 1}, {scale = 2.5}},
}

local function operands(size, dtype)
  local b, h, shared, l, s, e, f = table.unpack(size)
  local function make(...) return ampl.randn {...}:to(dtype) end
  return {q = make(b, h, l, e), k = make(b, shared, s, e), v = make(b, shared, s, f), dy = make(b, h, l, f)}
end

describe("scaled_dot_product_attention", function()
  for _, case in ipairs(cases) do
    for dtype, tolerance in pairs(TOLERANCE) do
      it(("%s in %s"):format(case[1], dtype), function()
        ampl.manual_seed(3)
        local options = type(case[3]) == "function" and case[3]() or case[3] or {}
        local t = operands(case[2], dtype)
        local got, want = attend(t, dtype, options), attend(t, "f64", options)
        for i = 1, #want do
          local e = error_of(got[i], want[i])
          assert(e <= tolerance, ("result %d: error %g"):format(i, e))
        end
      end)
    end
  end

  it("does not depend on the number of threads", function()
    local threads = ampl.get_num_threads()
    ampl.manual_seed(4)
    for _, dtype in ipairs {"f32", "bf16"} do
      local t = operands({2, 4, 2, 260, 390, 32, 32}, dtype)
      local options = {enable_gqa = true, is_causal = true, dropout_p = 0.25}
      ampl.set_num_threads(1)
      local one = attend(t, dtype, options)
      ampl.set_num_threads(3)
      local three = attend(t, dtype, options)
      ampl.set_num_threads(threads)
      for i = 1, #one do assert.equal(one[i]:tobytes(), three[i]:tobytes()) end
    end
  end)

  it("says what is wrong with its operands", function()
    local q = ampl.randn {2, 3, 4}
    local function message(...)
      local ok, why = pcall(ampl.scaled_dot_product_attention, ...)
      assert.is_false(ok)
      return tostring(why)
    end
    assert.matches("last sizes", message(q, ampl.randn {2, 3, 5}, q))
    assert.matches("dimensions", message(q, ampl.randn {4}, q))
    assert.matches("dimensions", message(q, ampl.randn {3, 4}, q, {enable_gqa = true}))
    assert.matches("broadcast", message(q, ampl.randn {3, 3, 4}, q))
    assert.matches("together", message(q, q, q, {mask = ampl.ones {3, 3}, is_causal = true}))
    assert.matches("between 0 and 1", message(q, q, q, {dropout_p = 1.5}))
    assert.matches("heads", message(q, ampl.randn {3, 3, 4}, ampl.randn {3, 3, 4}, {enable_gqa = true}))
  end)
end)
