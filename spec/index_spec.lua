-- x[key], x[key] = v, and the ops that lua/ampl/ops.lua makes of others.

local ampl = require "ampl"
local F = require "ampl.nn.functional"

local function values(t) return t:totable() end

-- Calls fn, which must raise; the error object.
local function raised(fn, ...)
  local ok, err = pcall(fn, ...)
  assert(not ok, "nothing was raised")
  return err
end

local function matrix() return ampl.arange(12):view(3, 4) end

describe("x[key]", function()
  it("takes positions", function()
    local x = matrix()
    assert.same({4, 5, 6, 7}, values(x[2]))
    assert.same({8, 9, 10, 11}, values(x[-1]))
    assert.equal(6, x[2][3]:item())
    assert.equal(6, x[{2, 3}]:item())
    assert.equal(11, x[{-1, -1}]:item())
    assert.same({8, 9, 10, 11}, values(x[{3}]))
    assert.same({4, 5, 6, 7}, values(x[2.0]))
  end)

  it("takes ranges with both ends", function()
    local x = matrix()
    assert.same({{0, 1, 2, 3}, {4, 5, 6, 7}}, values(x[{{1, 2}, {}}]))
    assert.same({{1, 2}, {5, 6}, {9, 10}}, values(x[{{}, {2, 3}}]))
    assert.same({{9, 11}}, values(x[{{3, 3}, {2, 4, 2}}]))
    assert.same({1, 5, 9}, values(x[{{}, 2}]))
    assert.same({{7}, {11}}, values(x[{{-2, -1}, {-1, -1}}]))
    assert.same({0, 4}, x[{{2, 1}}].shape)
    assert.same({3, 0}, x[{{}, {5, 4}}].shape)
  end)

  it("gives views", function()
    local x = ampl.zeros(3, 4)
    x[2]:fill_(1)
    x[{{}, {2, 3}}]:fill_(2)
    assert.same({{0, 2, 2, 0}, {1, 2, 2, 1}, {0, 2, 2, 0}}, values(x))
  end)

  it("takes masks", function()
    local x = matrix()
    assert.same({8, 9, 10, 11}, values(x[x:gt(7)]))
    assert.same({{0, 1, 2, 3}, {8, 9, 10, 11}}, values(x[ampl.tensor {true, false, true}]))
    assert.same({{0, 2}, {4, 6}, {8, 10}}, values(x[{{}, ampl.tensor {true, false, true, false}}]))
  end)

  it("takes index tensors", function()
    local x = matrix()
    local i = ampl.tensor {3, -3, 3}
    assert.same({{8, 9, 10, 11}, {0, 1, 2, 3}, {8, 9, 10, 11}}, values(x[i]))
    assert.same({{3, 0}, {7, 4}, {11, 8}}, values(x[{{}, ampl.tensor {4, 1}}]))
    assert.same({8, 2}, values(x[{ampl.tensor {3, 1}, ampl.tensor {1, 3}}]))
    assert.same({5, 7}, values(x[{2, ampl.tensor {2, 4}}]))
    assert.same({{{8, 9, 10, 11}}}, values(x[ampl.tensor {{3}}]))
    local y = ampl.arange(24):view(2, 3, 4)
    assert.same({{13, 17, 21}, {2, 6, 10}}, values(y[{ampl.tensor {2, 1}, {}, ampl.tensor {2, 3}}]))
    local mask = ampl.tensor {{true, false, true}, {false, true, false}}
    assert.same({{0, 1, 2, 3}, {8, 9, 10, 11}, {16, 17, 18, 19}}, values(y[mask]))
    assert.same({{1}, {9}, {17}}, values(y[{mask, {2, 2}}]))
  end)

  it("says what is out of range", function()
    local x = matrix()
    for _, key in ipairs {4, -4, 0, {1, 5}, {1, 0}, {1, -5}, {1, 1, 1}, {{1, 4}}, {{0, 2}}, {{5, 6}, {}},
                          {{}, {2, 5}}} do
      local err = raised(function() return x[key] end)
      assert.equal("EINDEX", err.code)
    end
    assert.matches("position 5 of dimension 2", raised(function() return x[{1, 5}] end).message, 1, true)
    local err = raised(function() return x[ampl.tensor {1, 2, 9, 0}] end)
    assert.equal("EINDEX", err.code)
    assert.matches("position 9 at {3}", err.message, 1, true)
    assert.equal("EINDEX", raised(function() return ampl.tensor(1)[1] end).code)
    assert.equal("ESHAPE", raised(function() return x[ampl.tensor {true, false}] end).code)
    for _, key in ipairs {1.5, {{1}}, {{1, 2, 3, 4}}, {"a"}, true} do
      assert.equal("EARG", raised(function() return x[key] end).code)
    end
    assert.equal("EVALUE", raised(function() return x[{{1, 3, 0}}] end).code)
    assert.equal("EDTYPE", raised(function() return x[ampl.tensor {1.0, 2.0}] end).code)
  end)
end)

describe("x[key] = v", function()
  it("writes to positions and ranges", function()
    local x = ampl.zeros(3, 4)
    x[1] = 1
    x[{2, 3}] = 2
    x[{{2, 3}, {1, 2}}] = ampl.tensor {{3.0, 4}, {5, 6}}
    x[{{}, 4}] = ampl.tensor {7.0, 8, 9}
    assert.same({{1, 1, 1, 7}, {3, 4, 2, 8}, {5, 6, 0, 9}}, values(x))
    x[3] = ampl.tensor {{1, 2, 3, 4}}                   -- a leading 1, and another dtype
    assert.same({1, 2, 3, 4}, values(x[3]))
    x[{{}}] = 0
    assert.same({0, 0, 0, 0}, values(x[2]))
  end)

  it("writes to masks and index tensors", function()
    local x = matrix():to("f32")
    x[x:gt(9)] = -1
    x[ampl.tensor {true, false, false}] = 0.5
    assert.same({{0.5, 0.5, 0.5, 0.5}, {4, 5, 6, 7}, {8, 9, -1, -1}}, values(x))
    x[x:lt(0)] = ampl.tensor {1.0, 2}
    x[ampl.tensor {2}] = 3
    x[{{}, ampl.tensor {1, -2}}] = ampl.tensor {{1.0, 2}, {3, 4}, {5, 6}}
    assert.same({{1, 0.5, 2, 0.5}, {3, 3, 4, 3}, {5, 9, 6, 2}}, values(x))
    local whole = ampl.zeros({4}, {dtype = "i32"})
    whole[ampl.tensor {1, 4}] = ampl.tensor {2.0, 3.0}
    assert.same({2, 0, 0, 3}, values(whole))
    local b = ampl.tensor {false, false}
    b[2] = true
    assert.same({false, true}, values(b))
  end)

  it("is differentiable", function()
    local function write(key)
      return function(x, v)
        local y = x * 1
        y[key] = v
        return y * y
      end
    end
    local o = {dtype = "f64", requires_grad = true}
    local x = ampl.randn({3, 4}, o)
    ampl.gradcheck(write(2), {x, ampl.randn({4}, o)})
    ampl.gradcheck(write {{2, 3}, {1, 4, 2}}, {x, ampl.randn({2, 2}, o)})
    ampl.gradcheck(write(ampl.tensor {3, 1}), {x, ampl.randn({2, 4}, o)})
    ampl.gradcheck(write {{}, ampl.tensor {4, 1}}, {x, ampl.randn({3, 2}, o)})
    ampl.gradcheck(write(ampl.ones({3, 4}, {dtype = "bool"}):tril()), {x, ampl.randn({6}, o)})
    ampl.gradcheck(write {2, {1, 2}}, {x, ampl.randn({}, o)})
    ampl.gradgradcheck(write {{2, 3}, 1}, {x, ampl.randn({2}, o)})
  end)

  it("says what does not fit", function()
    local x = ampl.zeros(3, 4)
    assert.equal("EINDEX", raised(function() x[4] = 1 end).code)
    assert.equal("EARG", raised(function() x[1] = "a" end).code)
    assert.equal("ESHAPE", raised(function() x[1] = ampl.zeros(3) end).code)
    assert.equal("ESHAPE", raised(function() x[ampl.tensor {1, 2}] = ampl.zeros(3, 4) end).code)
    assert.equal("EINDEX", raised(function() x[ampl.tensor {1, 4}] = 1 end).code)
    x:requires_grad_(true)
    assert.equal("EGRAD", raised(function() x[1] = 1 end).code)
  end)
end)

describe("pieces", function()
  local function shapes(list)
    local out = {}
    for i, t in ipairs(list) do out[i] = t.shape end
    return out
  end

  it("split", function()
    local x = matrix()
    assert.same({{1, 4}, {1, 4}, {1, 4}}, shapes(x:split(1)))
    assert.same({{3, 3}, {3, 1}}, shapes(x:split(3, 2)))
    assert.same({{3, 1}, {3, 0}, {3, 3}}, shapes(ampl.split(x, {1, 0, 3}, {dim = -1})))
    assert.equal("ESHAPE", raised(x.split, x, {1, 1}).code)
    assert.equal("EVALUE", raised(x.split, x, 0).code)
    assert.equal("EINDEX", raised(x.split, x, 1, 3).code)
  end)

  it("chunk and unbind", function()
    local x = matrix()
    assert.same({{2, 4}, {1, 4}}, shapes(x:chunk(2)))
    assert.same({{3, 1}, {3, 1}, {3, 1}, {3, 1}}, shapes(F.chunk(x, {chunks = 9, dim = 2})))
    local columns = x:unbind(2)
    assert.equal(4, #columns)
    assert.same({3, 7, 11}, values(columns[4]))
    assert.equal("EVALUE", raised(x.chunk, x, 0).code)
  end)
end)

describe("cat and stack", function()
  it("take and differentiate long lists", function()
    local list = {}
    for i = 1, 1000 do list[i] = ampl.full({2}, i, {dtype = "f32"}):requires_grad_(true) end
    (ampl.cat(list) * ampl.arange(2000)):sum():backward()
    assert.same({1998, 1999}, values(list[1000].grad))
    assert.same({512, 513}, values(list[257].grad))
    ampl.stack(list, 2)[2]:square():sum():backward()
    assert.same({512, 513 + 2 * 257}, values(list[257].grad))
  end)
end)

describe("sums over positions", function()
  -- thousands of values for a few places, in an order that chance gave
  local function gradient(dtype, threads)
    ampl.manual_seed(3)
    ampl.set_num_threads(threads)
    local w = ampl.randn({50, 96}, {dtype = dtype, requires_grad = true})
    local i = ampl.randint(1, 20, {4000})
    F.embedding(i, w):mul(ampl.randn({4000, 96}, {dtype = dtype})):sum():backward()
    return w.grad
  end

  it("do not depend on threads", function()
    local before = ampl.get_num_threads()
    for _, dtype in ipairs {"f32", "bf16", "f16"} do
      assert.equal(gradient(dtype, 1):tobytes(), gradient(dtype, 3):tobytes())
    end
    ampl.set_num_threads(before)
  end)

  it("are exact to the last bits", function()
    local n = 100000
    local ones = ampl.full({n}, 0.1)
    local at = ampl.ones({n}, {dtype = "i64"})
    local want = n * ones[1]:item()
    for _, y in ipairs {ampl.zeros(2):index_add(1, at, ones), ampl.zeros(2):scatter_add(1, at, ones),
                        ampl.zeros(2):index_put({at}, ones, true)} do
      assert(math.abs(y[1]:item() - want) <= want * 2.0 ^ -23)
    end
  end)

  it("embedding's special gradients can be differentiated again", function()
    local i = ampl.tensor {3, 1, 1, 3, 1}
    local w = ampl.randn({4, 2}, {dtype = "f64", requires_grad = true})
    for _, o in ipairs {{padding_idx = 3}, {scale_grad_by_freq = true}, {padding_idx = 1, scale_grad_by_freq = true}} do
      local cot = ampl.randn({5, 2}, {dtype = "f64", requires_grad = true})
      ampl.gradcheck(function(c)
        return ampl.enable_grad(function()
          return (ampl.grad(F.embedding(i, w, o), w, {grad_outputs = c, create_graph = true}))
        end)
      end, {cot})
    end
  end)
end)

describe("positions out of range", function()
  it("are named, the first one first", function()
    local x = matrix()
    local err = raised(x.gather, x, 2, ampl.tensor {{1, 2}, {3, 5}, {0, 9}})
    assert.equal("EINDEX", err.code)
    assert.matches("position 5 at {2, 2}; they count from 1 to 4", err.message, 1, true)
    err = raised(F.embedding, ampl.tensor {{1, 7}}, ampl.zeros(6, 2))
    assert.matches("row 7 at {1, 2}", err.message, 1, true)
    err = raised(F.one_hot, ampl.tensor {1, 0}, 3)
    assert.matches("class 0 at position 2; classes count from 1 to 3", err.message, 1, true)
    assert.equal("EINDEX", raised(x.index_select, x, 1, ampl.tensor {4}).code)
    assert.equal("EINDEX", raised(x.index_add, x, 1, ampl.tensor {-4}, ampl.zeros({1, 4}, {dtype = "i64"})).code)
    assert.equal("EINDEX", raised(ampl.bincount, ampl.tensor {2, 0}).code)
  end)
end)

describe("interpolate", function()
  it("takes a size or a factor", function()
    local x = ampl.arange(4):view(1, 1, 2, 2):to("f32")
    assert.same({1, 1, 3, 5}, F.interpolate(x, {size = {3, 5}}).shape)
    assert.same({1, 1, 3, 3}, F.interpolate(x, nil, 1.7, "bilinear").shape)
    assert.same({{0, 0, 1, 1}, {0, 0, 1, 1}, {2, 2, 3, 3}, {2, 2, 3, 3}}, values(F.interpolate(x, 4)[1][1]))
    assert.equal("EARG", raised(F.interpolate, x).code)
    assert.equal("EARG", raised(F.interpolate, x, 2, 2).code)
    assert.equal("EARG", raised(F.interpolate, x, {size = 2, align_corners = true}).code)
    assert.equal("EVALUE", raised(F.interpolate, x, {size = 2, mode = "round"}).code)
    assert.equal("ESHAPE", raised(F.interpolate, x, {size = 2, mode = "linear"}).code)
  end)
end)
