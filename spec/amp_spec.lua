-- Autocast: one test for each known trap, named by its number in the list of AMP semantics that the project keeps to.
-- The gradient scaler has a file of its own, amp_scaler_spec.lua.

local ampl = require "ampl"
local amp, F = ampl.amp, ampl.nn.functional

local function weight(values, shape)
  local w = ampl.tensor(values, {dtype = "f32"})
  return (shape and w:view(shape) or w):requires_grad_(true)
end

local function values(x) return x:to("f64"):reshape(-1):totable() end

local function close(want, got, tol)
  assert.equal(#want, #got)
  for i, v in ipairs(want) do
    local fits = math.abs(v - got[i]) <= tol * math.max(1, math.abs(v))
    assert.is_true(fits, ("element %d: %.9g, %.9g"):format(i, v, got[i]))
  end
end

local function failure(fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok, "must raise")
  return e
end

local function matrix(n, m, scale)
  ampl.manual_seed(7)
  return ampl.randn({n, m}) * (scale or 1)
end

describe("regions", function()
  it("hand results through, restore on errors, and take a region by hand", function()
    assert.same({1, nil, 3}, {amp.autocast(function() return 1, nil, 3 end)})
    assert.equal("boom", failure(amp.autocast, function() error("boom", 0) end))
    assert.is_false(amp.is_autocast_enabled())
    do
      local region <close> = amp.autocast{dtype = "f16"}
      assert.is_true(amp.is_autocast_enabled())
      assert.equal("f16", amp.get_autocast_dtype())
      region:close()
      assert.is_false(amp.is_autocast_enabled())
    end
    assert.equal("bf16", amp.get_autocast_dtype())
    assert.equal(5, amp.autocast({dtype = "f16"}, function(x) return x end, 5))
  end)

  it("nest: disabled inside, enabled again inside that, and back", function()
    local a, b = matrix(2, 2), matrix(2, 2)
    amp.autocast(function()
      assert.equal("bf16", a:matmul(b).dtype)
      amp.autocast({enabled = false}, function()
        assert.equal("f32", a:matmul(b).dtype)
        amp.autocast({dtype = "f16"}, function() assert.equal("f16", a:matmul(b).dtype) end)
        assert.equal("f32", a:matmul(b).dtype)
      end)
      assert.equal("bf16", a:matmul(b).dtype)
    end)
    assert.equal("f32", a:matmul(b).dtype)
  end)

  it("belong to the coroutine that entered them", function()
    local seen
    local co = coroutine.wrap(function()
      local _ <close> = amp.autocast{}
      coroutine.yield(amp.is_autocast_enabled())
      seen = amp.is_autocast_enabled()
    end)
    assert.is_true(co())
    assert.is_false(amp.is_autocast_enabled())
    co()
    assert.is_true(seen)
  end)

  it("leave f64, integers, explicit dtypes and in-place ops alone", function()
    local a, w = matrix(2, 2), matrix(2, 2)
    amp.autocast(function()
      assert.equal("f64", a:to("f64"):matmul(w:to("f64")).dtype)
      assert.equal("f32", F.softmax(a:to("bf16"), {dim = -1}).dtype)
      assert.equal("f16", F.softmax(a:to("bf16"), {dim = -1, dtype = "f16"}).dtype)
      local into = ampl.zeros(2, 2)
      assert.equal("f32", into:add_(a:to("bf16")).dtype)
      assert.equal("i64", ampl.tensor({1, 2}):add(ampl.tensor({3, 4})).dtype)
    end)
  end)

  it("say what is wrong with their options", function()
    assert.matches("unknown option \"dtyp\"; known are", failure(amp.autocast, {dtyp = "f16"}).message)
    assert.equal("EDTYPE", failure(amp.autocast, {dtype = "f64"}).code)
    assert.matches("there is no op", failure(amp.autocast, {f32 = {"no_such_op"}}).message)
    assert.equal("EARG", failure(amp.autocast, 3).code)
  end)
end)

describe("the cache of weight casts", function()
  it("B01 keeps no cast without its graph: no_grad first, then grad", function()
    local x, w = matrix(3, 4), matrix(4, 2):requires_grad_(true)
    local function grad(first)
      w.grad = nil
      amp.autocast(function()
        if first then ampl.no_grad(function() x:matmul(w) end) end
        x:matmul(w):sum():backward()
      end)
      return values(w.grad)
    end
    assert.same(grad(false), grad(true))
  end)

  it("B06 holds nothing when the outermost region has ended", function()
    local x, w = matrix(8, 8), matrix(8, 8):requires_grad_(true)
    amp.autocast(function() x:matmul(w) end)
    collectgarbage()
    local live = ampl.memory().live
    amp.autocast(function()
      amp.autocast(function() x:matmul(w) end)
      assert.equal(1, amp.cache_stats().entries)
      assert.equal(8 * 8 * 2, amp.cache_stats().bytes)
      amp.autocast({enabled = false}, function() end)
      assert.equal(1, amp.cache_stats().entries)
    end)
    collectgarbage()
    assert.equal(0, amp.cache_stats().entries)
    assert.equal(0, amp.cache_stats().bytes)
    assert.equal(live, ampl.memory().live)
  end)

  it("B06 is empty after an error, too, and after clear_autocast_cache", function()
    local x, w = matrix(2, 2), matrix(2, 2):requires_grad_(true)
    failure(amp.autocast, function()
      x:matmul(w)
      error("boom")
    end)
    assert.equal(0, amp.cache_stats().entries)
    amp.autocast(function()
      x:matmul(w)
      amp.clear_autocast_cache()
      assert.equal(0, amp.cache_stats().entries)
    end)
  end)

  it("B08 casts a weight once a region, whatever it is used for", function()
    local x, w = matrix(4, 4), matrix(4, 4):requires_grad_(true)
    local before = amp.cache_stats()
    amp.autocast(function()
      local y = x
      for _ = 1, 5 do y = y:matmul(w) end
      y:sum():backward()
    end)
    local after = amp.cache_stats()
    assert.equal(1, after.casts - before.casts)
    assert.equal(4, after.hits - before.hits)
  end)

  it("sees in-place changes of a weight", function()
    local x, w = ampl.eye(2), weight({1, 1, 1, 1}, {2, 2})
    amp.autocast(function()
      assert.same({1, 1, 1, 1}, values(x:matmul(w)))
      ampl.no_grad(function() w:mul_(3) end)
      assert.same({3, 3, 3, 3}, values(x:matmul(w)))
    end)
  end)

  it("can be switched off, and stays off inside", function()
    local x, w = matrix(2, 2), matrix(2, 2):requires_grad_(true)
    amp.autocast({cache_enabled = false}, function()
      amp.autocast(function() x:matmul(w) end)
      assert.equal(0, amp.cache_stats().entries)
    end)
  end)

  it("D05 sums the gradients of a shared weight in f32", function()
    local w = weight({1}, {1, 1})
    for _, cached in ipairs {true, false} do
      w.grad = nil
      amp.autocast({cache_enabled = cached}, function()
        local loss
        for _, g in ipairs {1, 1, 1, 1, 256} do
          local y = ampl.tensor({{g + 0.0}}):matmul(w):sum()
          loss = loss and loss + y or y
        end
        loss:backward()
      end)
      assert.equal("f32", w.grad.dtype)
      assert.equal(260, w.grad:item())
    end
  end)
end)

describe("dtypes", function()
  it("backward has the dtypes of forward: bf16 activations, f32 leaves", function()
    local x, w = matrix(2, 2), matrix(2, 2):requires_grad_(true)
    local seen
    amp.autocast(function()
      local y = x:matmul(w)
      y:register_hook(function(g) seen = g.dtype end)
      y:sum():backward()
    end)
    assert.equal("bf16", seen)
    assert.equal("f32", w.grad.dtype)
  end)

  it("B09 backward inside a region leaves bf16 ops in bf16", function()
    local w = matrix(2, 2):requires_grad_(true)
    local seen
    amp.autocast(function()
      local y = ampl.eye(2):matmul(w)
      local z = ampl.zeros({2, 2}, {dtype = "bf16"})
      z = z:index_put({ampl.tensor({1})}, y[1])
      y:register_hook(function(g) seen = g.dtype end)
      z:sum():backward()
    end)
    assert.equal("bf16", seen)
    assert.same({1, 1, 0, 0}, values(w.grad))
  end)

  it("B14 brings mixed operands to the widest dtype", function()
    amp.autocast({dtype = "f16"}, function()
      local into, src = ampl.zeros(3), ampl.ones({2}, {dtype = "f16"})
      local y = into:scatter_add(1, ampl.tensor({1, 3}), src)
      assert.equal("f32", y.dtype)
      assert.same({1, 0, 1}, values(y))
      assert.equal("f32", into:index_put({ampl.tensor({2})}, ampl.ones({1}, {dtype = "f16"})).dtype)
      assert.equal("f32", ampl.cat({into, src}).dtype)
    end)
  end)

  it("B17 refuses BCE on 16 bits and names the logits form; f32 is fine", function()
    local p, t = ampl.tensor({0.25, 0.75}), ampl.tensor({0.0, 1.0})
    amp.autocast(function()
      local e = failure(F.binary_cross_entropy, p:to("bf16"), t)
      assert.equal("EDTYPE", e.code)
      assert.matches("binary_cross_entropy_with_logits", e.message)
      assert.equal("f32", F.binary_cross_entropy(p, t).dtype)
      amp.autocast({enabled = false}, function()
        assert.equal("f32", F.binary_cross_entropy(p:to("bf16"):float(), t).dtype)
      end)
      assert.equal("f32", F.binary_cross_entropy_with_logits(p:to("bf16"), t).dtype)
    end)
  end)

  it("B18 the policy of every op can be asked for", function()
    assert.equal("LOW", (amp.policy("matmul")))
    assert.equal("F32_OUT", (amp.policy("sum")))
    local category, why = amp.policy("softmax")
    assert.equal("F32_OUT", category)
    assert.matches("f32", why)
    local lists = amp.policy()
    assert.matches("matmul", tostring(lists))
    local n = 0
    for _, list in pairs(lists) do n = n + #list end
    assert.equal(#ampl.ops(), n)
    assert.matches("there is no op \"no_such_op\"", failure(amp.policy, "no_such_op").message)
    amp.autocast(function() assert.equal("f32", ampl.ones({2}, {dtype = "bf16"}):sum().dtype) end)
  end)

  it("B19 a region can force ops to f32 or to the low dtype", function()
    local a, b = matrix(2, 2), matrix(2, 2)
    amp.autocast({f32 = {"matmul"}, low = {"softmax"}}, function()
      assert.equal("f32", a:matmul(b).dtype)
      assert.equal("f32", a:to("bf16"):matmul(b).dtype)
      assert.equal("bf16", a:softmax(1).dtype)
      amp.autocast(function() assert.equal("f32", a:matmul(b).dtype) end)
    end)
    amp.autocast(function() assert.equal("bf16", a:matmul(b).dtype) end)
  end)

  it("B20 prelu takes a bf16 input and a f32 weight", function()
    amp.autocast(function()
      local y = F.prelu(ampl.tensor({-2.0, 2.0}):to("bf16"), weight({0.5}))
      assert.same({-1, 2}, values(y))
    end)
  end)

  it("B22 layer_norm of zeros in f16 is zeros", function()
    amp.autocast({dtype = "f16"}, function()
      local y = F.layer_norm(ampl.zeros({2, 8}, {dtype = "f16"}), {8}, {eps = 1e-12})
      for _, v in ipairs(values(y)) do assert.equal(0, v) end
    end)
  end)

  it("B23 the gradient of a norm of small f16 values is finite", function()
    local x = ampl.full({4}, 1e-4, {dtype = "f16"}):requires_grad_(true)
    amp.autocast({dtype = "f16"}, function() x:norm{p = 3}:backward() end)
    for _, v in ipairs(values(x.grad)) do assert.is_true(math.abs(v - 4 ^ (-2 / 3)) < 2e-3) end
  end)

  it("B28 fused attention casts q, k and v alike", function()
    local q, k = matrix(4, 8):view(1, 1, 4, 8), matrix(4, 8):view(1, 1, 4, 8)
    amp.autocast({dtype = "f16"}, function()
      local y = F.scaled_dot_product_attention(q, k, k:to("f16"))
      assert.equal("f16", y.dtype)
    end)
  end)

  it("D09 rounds a NaN to a NaN, whatever its payload", function()
    local nan = ampl.from_bytes(("<I4"):pack(0x7f800001), {1}, {dtype = "f32"})
    for _, dtype in ipairs {"bf16", "f16"} do
      assert.is_true(nan:to(dtype):isnan():item())
      assert.is_false(nan:to(dtype):isinf():item())
    end
  end)

  it("D12 recurrent layers run in the region's dtype", function()
    local rnn = ampl.nn.GRU(3, 4)
    amp.autocast({dtype = "bf16"}, function() assert.equal("bf16", (rnn(matrix(5, 3):view(5, 1, 3))).dtype) end)
  end)
end)

describe("functions with a backward of their own", function()
  local function matmul(wrap)
    local spec = {
      forward = function(ctx, a, b)
        ctx:save(a, b)
        return a:matmul(b)
      end,
      backward = function(ctx, dy)
        local a, b = ctx:saved()
        ctx.seen = dy:matmul(b:t()).dtype
        return dy:matmul(b:t()), a:t():matmul(dy)
      end,
    }
    local seen = {}
    local backward = spec.backward
    spec.backward = function(ctx, dy)
      local da, db = backward(ctx, dy)
      seen[1] = da.dtype
      return da, db
    end
    if wrap then spec.forward, spec.backward = wrap(spec.forward, spec.backward) end
    return ampl.Function(spec), seen
  end

  it("B11 backward runs in the dtype of forward, where custom_bwd wraps it", function()
    local f, seen = matmul(function(fwd, bwd) return amp.custom_fwd(fwd), amp.custom_bwd(bwd) end)
    local a, b = matrix(2, 3):requires_grad_(true), matrix(3, 2):requires_grad_(true)
    local y = amp.autocast({dtype = "bf16"}, function() return f(a, b) end)
    assert.equal("bf16", y.dtype)
    y:sum():backward()
    assert.equal("bf16", seen[1])
    assert.equal("f32", a.grad.dtype)
    local want = values(ampl.ones(2, 2):matmul(b:detach():t()))
    close(want, values(a.grad), 2e-2)
  end)

  it("B12 custom_fwd casts the operands of a function, and only in a region", function()
    local seen
    local add = amp.custom_fwd(function(x, y)
      seen = {x.dtype, y.dtype, amp.is_autocast_enabled()}
      return x + y
    end, {cast_inputs = "f16"})
    local x, y = ampl.ones(2), ampl.ones({2}, {dtype = "bf16"})
    add(x, y)
    assert.same({"f32", "bf16", false}, seen)
    amp.autocast(function() assert.equal("f16", add(x, y).dtype) end)
    assert.same({"f16", "f16", false}, seen)
    local z = ampl.ones({2}, {dtype = "f64"})
    amp.autocast(function() add(z, ampl.tensor({1, 2})) end)
    assert.same({"f64", "i64", false}, seen)
    assert.equal("EARG", failure(amp.custom_fwd, 3).code)
    assert.equal("EDTYPE", failure(amp.custom_fwd, print, {cast_inputs = "f64"}).code)
  end)

  it("cast_inputs: forward and backward of a Function run with autocast off", function()
    local f, seen = matmul(function(fwd, bwd)
      return amp.custom_fwd(fwd, {cast_inputs = "f32"}), amp.custom_bwd(bwd)
    end)
    local a, b = matrix(2, 3):to("bf16"):requires_grad_(true), matrix(3, 2):requires_grad_(true)
    local y = amp.autocast(function() return f(a, b) end)
    assert.equal("f32", y.dtype)
    y:sum():backward()
    assert.equal("f32", seen[1])
    assert.equal("bf16", a.grad.dtype)
  end)

  it("casts within lists and tables, and keeps gradients in manual mode", function()
    local w = weight({1, 2})
    local f = amp.custom_fwd(function(list) return list.x[1] * 2 end, {cast_inputs = "bf16"})
    local y = amp.autocast(function() return f({x = {w}}) end)
    assert.equal("bf16", y.dtype)
    y:sum():backward()
    assert.same({2, 2}, values(w.grad))
  end)
end)

describe("second order", function()
  it("B72 the gradient of a scaled gradient works in f16", function()
    local w = weight({0.5, -0.25, 0.125, 1}, {2, 2})
    local x = ampl.tensor({{1.0, 2.0}, {3.0, 4.0}})
    local scaler = amp.GradScaler{init_scale = 128}
    local opt = ampl.optim.SGD({w}, {lr = 0.1})
    local loss = amp.autocast({dtype = "f16"}, function() return x:matmul(w):square():mean() end)
    local g = ampl.grad(scaler:scale(loss), {w}, {create_graph = true})
    g = g * (1 / scaler:get_scale())
    local penalty = amp.autocast({dtype = "f16"}, function() return g:square():sum():sqrt() end)
    scaler:scale(loss + penalty):backward()
    assert.is_true(scaler:step(opt))
    local v = weight({0.5, -0.25, 0.125, 1}, {2, 2})
    local plain = x:matmul(v):square():mean()
    local h = ampl.grad(plain, {v}, {create_graph = true})
    plain = plain + h:square():sum():sqrt()
    plain:backward()
    close(values(v.grad), values(w.grad), 5e-3)
  end)
end)

describe("16 bits", function()
  it("every pattern survives the way through f32", function()
    local bytes = {}
    for i = 0, 65535 do bytes[i + 1] = ("<I2"):pack(i) end
    local text = table.concat(bytes)
    for dtype, mask in pairs {f16 = 0x7c00, bf16 = 0x7f80} do
      local x = ampl.from_bytes(text, {65536}, {dtype = dtype})
      local back = x:float():to(dtype):tobytes()
      local wide = x:float():isnan():to("u8"):tobytes()
      for i = 0, 65535 do
        local nan = i & mask == mask and i & (0x7fff ~ mask) ~= 0
        local got = ("<I2"):unpack(back, 2 * i + 1)
        assert.is_true(nan == (wide:byte(i + 1) == 1))
        if nan then assert.is_true(got & mask == mask and got & (0x7fff ~ mask) ~= 0)
        else assert.equal(i, got) end
      end
    end
  end)

  it("rounds to the nearest, halves to even, at both ends of the range", function()
    local function to(dtype, v) return ampl.tensor({v}, {dtype = "f32"}):to(dtype):item() end
    assert.equal(2048, to("f16", 2049.0))
    assert.equal(2052, to("f16", 2051.0))
    assert.equal(65504, to("f16", 65519.996))
    assert.equal(math.huge, to("f16", 65520.0))
    assert.equal(0, to("f16", 2.0 ^ -25))
    assert.equal(2.0 ^ -24, to("f16", 2.0 ^ -25 * (1 + 2.0 ^ -23)))
    assert.equal(1, to("bf16", 1.00390625))
    assert.equal(1.015625, to("bf16", 1.01171875))
    assert.equal(math.huge, to("bf16", 3.4028234663852886e38))
    assert.equal(2.0 ^ -133, to("bf16", 2.0 ^ -133))
  end)
end)
