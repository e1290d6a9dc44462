-- Two backwards that share a part of the graph: a node that kept nothing for backward is walked again; one whose saved
-- tensors the first backward freed raises.  Which is which is what PyTorch 2.15 does.
local ampl = require "ampl"
local amp, F = ampl.amp, ampl.nn.functional

local function leaf(t, options)
  options = options or {}
  options.requires_grad = true
  return ampl.tensor(t, options)
end

local function positions(t) return ampl.tensor(t, {dtype = "i64"}) end
local function image(t) return t:view(1, 1, 2, 2) end

local keeps_nothing = {
  add = function(t) return t + 1 end,
  add_in_place = function(t) return t:clone():add_(1) end,
  add_scaled = function(t) return ampl.add(t, t, 2) end,
  adaptive_avg_pool2d = function(t) return F.adaptive_avg_pool2d(image(t), 1) end,
  avg_pool2d = function(t) return F.avg_pool2d(image(t), 2) end,
  cat = function(t) return ampl.cat {t, t} end,
  clone = function(t) return t:clone() end,
  copy = function(t) return ampl.zeros(2, 2):copy_(t) end,
  cumsum = function(t) return t:cumsum(1) end,
  diag = function(t) return t:diag() end,
  expand = function(t) return t:expand(3, 2, 2) end,
  flip = function(t) return t:flip(1) end,
  fold = function(t) return F.fold(t:view(1, 4, 1), {2, 2}, 2) end,
  interpolate = function(t) return F.interpolate(image(t), {scale_factor = 2}) end,
  mean = function(t) return t:mean() end,
  narrow = function(t) return t:narrow(1, 1, 1) end,
  neg = function(t) return -t end,
  pad = function(t) return F.pad(t, {1, 1}) end,
  permute = function(t) return t:permute(2, 1) end,
  pixel_shuffle = function(t) return F.pixel_shuffle(t:view(1, 4, 1, 1), 2) end,
  repeat_interleave = function(t) return t:repeat_interleave(2) end,
  roll = function(t) return t:roll(1, 1) end,
  round = function(t) return t:round() end,
  select = function(t) return t[1] end,
  sign = function(t) return t:sign() end,
  stack = function(t) return ampl.stack {t, t} end,
  sub = function(t) return 1 - t end,
  sum = function(t) return t:sum() end,
  tile = function(t) return t:tile(2) end,
  to = function(t) return t:to("f16") end,
  transpose = function(t) return t:t() end,
  tril = function(t) return t:tril() end,
  unfold = function(t) return F.unfold(image(t), 2) end,
  view = function(t) return t:view(4) end,
}

local saves = {
  abs = function(t) return t:abs() end,
  div_by_number = function(t) return t / 2 end,
  embedding = function(t) return F.embedding(positions {1}, t) end,
  exp = function(t) return t:exp() end,
  gather = function(t) return t:gather(1, positions {{1, 1}}) end,
  index_select = function(t) return t:index_select(1, positions {1}) end,
  linear = function(t) return F.linear(ampl.ones(1, 2), t) end,
  masked_fill = function(t) return t:masked_fill(t:gt(0), 0) end,
  max = function(t) return t:max() end,
  mul = function(t) return t * t end,
  mul_by_number = function(t) return t * 2 end,
  mul_by_tensor = function(t) return t * ampl.ones(2, 2) end,
  norm = function(t) return t:norm() end,
  pow = function(t) return t ^ 2 end,
  relu = function(t) return t:relu() end,
  softmax = function(t) return F.softmax(t, 1) end,
  sort = function(t) return (t:sort()) end,
  sqrt = function(t) return t:sqrt() end,
  var = function(t) return t:var() end,
  where = function(t) return ampl.where(t:gt(0), t, 0) end,
}

local function refused(fn)
  local ok, e = pcall(fn)
  assert.is_false(ok)
  assert.are.equal("EGRAD", e.code)
  assert.matches("a second time", e.message)
  assert.matches("retain_graph = true", e.message)
  return e
end

describe("a second backward", function()
  for name, fn in pairs(keeps_nothing) do
    it("walks " .. name .. " again", function()
      local t = leaf {{1.0, 2.0}, {3.0, 4.0}}
      local y = fn(t)
      y:backward(ampl.ones_like(y))
      local once = t.grad:clone()
      y:backward(ampl.ones_like(y))
      assert.are.same((once * 2):totable(), t.grad:totable())
    end)
  end

  for name, fn in pairs(saves) do
    it("is refused by " .. name, function()
      local t = leaf {{1.0, 2.0}, {3.0, 4.0}}
      local y = fn(t)
      y:backward(ampl.ones_like(y))
      local once = t.grad:totable()
      refused(function() y:backward(ampl.ones_like(y)) end)
      assert.are.same(once, t.grad:totable())
      t.grad = nil
      y = fn(t)
      y:backward(ampl.ones_like(y), {retain_graph = true})
      y:backward(ampl.ones_like(y))
    end)
  end

  it("goes through what two losses share", function()
    local x = leaf {1.0, 2.0}
    local h = (x + 1):view(2, 1)
    h:sum():backward();
    (h * h):sum():backward()
    assert.are.same({5, 7}, x.grad:totable())
    local z = x:exp()
    local k = z + 1
    k:sum():backward()
    assert.matches("backward through exp a second time", refused(function() (k * 2):sum():backward() end).message)
  end)

  it("uses the cast of a weight again, in every low dtype", function()
    for _, dtype in ipairs {"f16", "bf16"} do
      local w = leaf {{1.0, 2.0}}
      amp.autocast({dtype = dtype}, function()
        for i = 1, 3 do F.linear(ampl.full({1, 2}, i + 0.0), w):sum():backward() end
        assert.are.equal(1, amp.cache_stats().entries)
      end)
      assert.are.same({{6, 6}}, w.grad:totable())
    end
  end)

  it("gives ampl.grad the same", function()
    local x = leaf {1.0, 2.0}
    local h = x + 1
    local loss = h:sum()
    assert.are.same({1, 1}, ampl.grad(loss, x):totable())
    assert.are.same({1, 1}, ampl.grad(loss, x):totable())
    local y = h * h
    assert.are.same({4, 6}, ampl.grad(y:sum(), x):totable())
    refused(function() return ampl.grad(y:sum(), x) end)
  end)

  it("runs a Function that saved nothing again, and stops at what one saved", function()
    local double = ampl.Function {
      forward = function(ctx, x) ctx.factor = 2 return x * 2 end,
      backward = function(ctx, dy) return dy * ctx.factor end,
    }
    local x = leaf {1.0, 3.0}
    local y = double(x)
    y:sum():backward()
    y:sum():backward()
    assert.are.same({4, 4}, x.grad:totable())

    local square = ampl.Function {
      forward = function(ctx, v) ctx:save(v) return v * v end,
      backward = function(ctx, dy) return dy * ctx:saved() * 2 end,
    }
    x.grad = nil
    y = square(x)
    y:sum():backward({retain_graph = true})
    y:sum():backward()
    assert.are.same({4, 12}, x.grad:totable())
    refused(function() y:sum():backward() end)
  end)

  it("keeps none of what a Function saved", function()
    local square = ampl.Function {
      forward = function(ctx, v) ctx:save(v:clone()) return v * v end,
      backward = function(ctx, dy) return dy * ctx:saved() * 2 end,
    }
    local x = leaf {1.0, 3.0}
    local y = square(x)
    collectgarbage()
    collectgarbage()
    local before = ampl.memory().tensors
    y:sum():backward()
    x.grad = nil
    collectgarbage()
    collectgarbage()
    assert.are.equal(before - 1, ampl.memory().tensors)
  end)
end)
