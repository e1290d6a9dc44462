-- Masks of attention: targets that may look nowhere, each kind of mask, in every layer; what a wrong mask is told.

local ampl = require "ampl"
local raises = require "spec.support.raises"
local nn, F = ampl.nn, ampl.nn.functional

local function finite(t) return t:isfinite():all():item() end

local function near(want, t, tolerance)
  local got = t:detach():flatten():totable()
  assert.are.equal(#want, #got)
  for i, w in ipairs(want) do
    assert(math.abs(got[i] - w) <= tolerance, ("[%d] is %.17g, not %.17g"):format(i, got[i], w))
  end
end

-- (i * step mod modulus - less) / 8, an f64 tensor of this shape.
local function pattern(shape, step, modulus, less)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  local values = {}
  for i = 0, n - 1 do values[i + 1] = (i * step % modulus - less) / 8 end
  return ampl.tensor(values, {dtype = "f64"}):view(shape)
end

describe("a target that may look nowhere", function()
  local padding = ampl.tensor({{false, false, true}, {false, true, false}})
  local blind = ampl.tensor({{false, true, false}, {true, true, true}, {false, false, false}})

  -- PyTorch 2.15, need_weights = False.
  local y = {
    -0.45703125, 0.408203125, 0.166015625, 0.07421875, -0.375, 0.375, 0.25, 0.125, -0.604320692006, 0.401735387358,
    0.330381151203, 0.206487642539, -0.206402208093, 0.406522386827, -0.076209726044, -0.189348061372, -0.375, 0.375,
    0.25, 0.125, -0.206013965658, 0.406522406045, -0.076598064566, -0.189822686667,
  }
  local dx = {
    0.522073465492, -0.483808601991, 0.42014941603, -0.619758310012, 0.237142768343, -0.233175792123, 0.201799950239,
    -0.234492951668, -0.004768747189, -0.008200111875, 0.023142291519, -0.010144852548, -0.052809015807,
    -0.022289266512, -0.080109449225, -0.037140655998, 0, 0, 0, 0, -0.064972625563, -0.021711171191, -0.075106907967,
    -0.042931666272,
  }
  local db = {0.032563369287, 0.009810481231, -0.007635101908, -0.020104721059, 0, 0, 0, 0, 2.469741969662,
              -0.306522142696, -0.503692052479, -0.271893859599}

  it("gets 0, and hands nothing back, with weights and without, as PyTorch", function()
    for _, need_weights in ipairs({false, true}) do
      for _, float in ipairs({false, true}) do
        local m = nn.MultiheadAttention(4, 2, {batch_first = true, dtype = "f64"})
        local step = 3
        for _, p in ipairs({m.in_proj_weight, m.in_proj_bias, m.out_proj.weight, m.out_proj.bias}) do
          p:detach():copy_(pattern(p.shape, step, 7, 3))
          step = step + 1
        end
        local x = pattern({2, 3, 4}, 5, 11, 5):requires_grad_(true)
        local mask = float and ampl.zeros({3, 3}, {dtype = "f64"}):masked_fill(blind, -math.huge) or blind
        local out, weights = m(x, x, x, {key_padding_mask = padding, attn_mask = mask, need_weights = need_weights})
        out:square():sum():backward()
        near(y, out, 1e-11)
        near(dx, x.grad, 1e-11)
        near(db, m.in_proj_bias.grad, 1e-11)
        if need_weights then
          near({1, 0, 1, 1, 0, 1}, weights:sum(-1), 1e-12)
        else
          assert.is_nil(weights)
        end
      end
    end
  end)

  it("takes a whole sample with it, and leaves the others alone", function()
    for _, options in ipairs({{}, {average_attn_weights = false}, {need_weights = false}}) do
      for _, dtype in ipairs({"f32", "bf16", "f16"}) do
        local x = ampl.randn(2, 3, 4):to(dtype)
        local m = nn.MultiheadAttention(4, 2, {batch_first = true, dtype = dtype})
        options.key_padding_mask = ampl.tensor({{false, false, false}, {true, true, true}})
        local out, weights = m(x, x, x, options)
        out:float():sum():backward()
        assert(finite(out))
        near(m.out_proj.bias:detach():float():totable(), out[2][1]:float(), 0)
        if weights then assert.are.equal(0, weights[2]:abs():sum():item()) end
        for name, p in m:named_parameters() do assert(finite(p.grad), name) end
        options.key_padding_mask = nil
      end
    end
  end)

  it("gets 0 of scaled_dot_product_attention, in every dtype and size", function()
    for _, dtype in ipairs({"f32", "f64", "f16", "bf16"}) do
      for _, size in ipairs({{3, 2, 8}, {40, 130, 8}, {5, 600, 64}, {1, 1, 1}}) do
        local targets, sources, width = table.unpack(size)
        for _, kind in ipairs({"bool", "float", "causal"}) do
          local list = {}
          for i, n in ipairs({targets, sources, sources}) do
            list[i] = ampl.randn(2, 2, n, width):to(dtype):requires_grad_(true)
          end
          local mask
          if kind ~= "causal" then
            local look = ampl.rand(2, 1, targets, sources):gt(0.5)
            look[{1, {}, 1}] = false
            mask = look
            if kind == "float" then
              mask = ampl.zeros({2, 1, targets, sources}, {dtype = dtype}):masked_fill(look:logical_not(), -math.huge)
              mask:requires_grad_(true)
            end
          end
          local out = F.scaled_dot_product_attention(list[1], list[2], list[3], {attn_mask = mask,
                                                                                 is_causal = kind == "causal"})
          out:float():sum():backward()
          local what = ("%s %s {%d, %d, %d}"):format(dtype, kind, targets, sources, width)
          assert(finite(out), what)
          if mask then assert.are.equal(0, out[{1, {}, 1}]:abs():float():sum():item(), what) end
          for _, t in ipairs(list) do assert(finite(t.grad), what) end
          if kind == "float" then assert(finite(mask.grad), what) end
        end
      end
    end
  end)

  it("leaves encoders and decoders finite", function()
    local padding3 = ampl.tensor({{false, false, true}, {true, true, true}})
    for _, norm_first in ipairs({false, true}) do
      local how = {dim_feedforward = 8, batch_first = true, norm_first = norm_first}
      local layer = nn.TransformerEncoderLayer(4, 2, how)
      local x = ampl.randn(2, 3, 4, {requires_grad = true})
      local out = nn.TransformerEncoder(layer, 2)(x, {mask = blind, src_key_padding_mask = padding3})
      out:square():sum():backward()
      assert(finite(out) and finite(x.grad))
      local decoder = nn.TransformerDecoderLayer(4, 2, how)
      local z, memory = ampl.randn(2, 3, 4, {requires_grad = true}), ampl.randn(2, 3, 4, {requires_grad = true})
      out = decoder(z, memory, {tgt_mask = blind, tgt_key_padding_mask = padding3, memory_key_padding_mask = padding3,
                                memory_mask = blind})
      out:square():sum():backward()
      assert(finite(out) and finite(z.grad) and finite(memory.grad))
    end
  end)

  it("cannot be where there are a learned key or zeros to look at", function()
    local x = ampl.randn(2, 3, 4)
    for _, how in ipairs({{add_bias_kv = true}, {add_zero_attn = true}, {add_bias_kv = true, add_zero_attn = true}}) do
      how.batch_first = true
      local m = nn.MultiheadAttention(4, 2, how)
      local out, weights = m(x, x, x, {key_padding_mask = ampl.tensor({{false, false, false}, {true, true, true}})})
      assert(finite(out))
      near({1, 1, 1, 1, 1, 1}, weights:sum(-1), 1e-6)
    end
  end)
end)

describe("a wrong mask", function()
  local x = ampl.ones(3, 2, 4)                          -- length, batch, size
  local whole = ampl.ones(2, 3, {dtype = "i64"})
  local short = ampl.zeros(2, 2, {dtype = "bool"})

  it("is told by the name that the layer has for it", function()
    local attention, encoder = nn.MultiheadAttention(4, 2), nn.TransformerEncoderLayer(4, 2, 8)
    local decoder, stack = nn.TransformerDecoderLayer(4, 2, 8), nn.TransformerEncoder(encoder, 1)
    local cases = {
      {attention, {x, x, x}, "MultiheadAttention", {"key_padding_mask"}, {"attn_mask"}},
      {encoder, {x}, "TransformerEncoderLayer", {"src_key_padding_mask"}, {"src_mask"}},
      {stack, {x}, "TransformerEncoder", {"src_key_padding_mask"}, {"mask"}},
      {decoder, {x, x}, "TransformerDecoderLayer", {"tgt_key_padding_mask", "memory_key_padding_mask"},
       {"tgt_mask", "memory_mask"}},
    }
    for _, case in ipairs(cases) do
      local function call(name, mask)
        local list = {table.unpack(case[2])}
        list[#list + 1] = {[name] = mask}
        return case[1](table.unpack(list))
      end
      for kind = 4, 5 do
        for _, name in ipairs(case[kind]) do
          local e = raises("EDTYPE", {case[3] .. ": " .. name .. " is i64", "true where not to look"}, call, name,
                           whole)
          assert.is_nil(e.message:find("true: look", 1, true))
          raises("ESHAPE", {case[3], name .. " must be", kind == 4 and "{2, 3}, (batch, sources), not {2, 2}" or
                            "{3, 3}, (targets, sources), or {4, 3, 3}, one for each head of each sample, not {2, 2}"},
                 call, name, short)
          raises("EARG", {case[3], name .. " must be a tensor, not 5"}, call, name, 5)
        end
      end
    end
    raises("EARG", {"is_causal needs attn_mask"}, attention, x, x, x, {is_causal = true})
    raises("EARG", {"is_causal needs src_mask"}, encoder, x, {is_causal = true})
    raises("EARG", {"memory_is_causal needs memory_mask"}, decoder, x, x, {memory_is_causal = true})
  end)

  it("and a wrong query, key or value", function()
    local m = nn.MultiheadAttention(4, 2, {kdim = 3, vdim = 5})
    raises("EARG", {"key must be a tensor, not nil"}, m, x)
    raises("ESHAPE", {"key must be (length, batch, 3)", "{3, 2, 4}"}, m, x, x, x)
    raises("ESHAPE", {"query must be (length, batch, 4)", "{3, 4, 1, 1}"}, m, ampl.ones(3, 4, 1, 1), x, x)
    raises("ESHAPE", {"value must be (length, batch, 5)"}, m, x, ampl.ones(3, 2, 3), ampl.ones(3, 5))
    raises("EARG", {"memory must be a tensor, not nil"}, nn.TransformerDecoderLayer(4, 2, 8), x)
  end)
end)
