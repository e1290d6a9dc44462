-- Sizes whose products and sums wrap, windows that reach beyond any integer, dimensions without elements.
local ampl = require "ampl"
local nn, F = ampl.nn, ampl.nn.functional

local big = 1 << 62
local huge = {1 << 31, 1 << 32, 1 << 33, 1 << 53, big, math.maxinteger, math.mininteger, math.mininteger + 1, -1}

-- fn fails with an error object of one of the codes, whose text holds every pattern.
local function refuses(codes, patterns, fn)
  local ok, e = pcall(fn)
  assert(not ok, "no error")
  assert(type(e) ~= "string" and e.code, "a bare error: " .. tostring(e))
  assert((" " .. codes .. " "):find(" " .. e.code .. " ", 1, true), e.code .. ", not " .. codes .. ": " .. tostring(e))
  for _, p in ipairs(patterns) do
    assert(tostring(e):find(p), ("'%s' does not say '%s'"):format(tostring(e), p))
  end
end

-- What is refused for want of memory is so on every machine.
local limit = ampl.memory_limit()
setup(function() ampl.memory_limit(256 << 20) end)
teardown(function() ampl.memory_limit(limit) end)

local function shape(x) return table.concat(x.shape, ",") end

describe("more elements than there are addresses", function()
  it("are refused where a tensor is made", function()
    for _, n in ipairs {1 << 31, 1 << 32, big} do
      refuses("ESHAPE ENOMEM", {"shape"}, function() return ampl.zeros(n, n, 4) end)
      refuses("ESHAPE", {"shape", "zeros"}, function() return ampl.zeros(0, n, n) end)
      refuses("ESHAPE", {"shape"}, function() return ampl.zeros(n, n, 0, 2) end)
      refuses("ESHAPE", {"shape"}, function() return ampl.from_bytes("", {0, n, n}) end)
    end
    refuses("ESHAPE", {"shape"}, function() return ampl.zeros(0, 1 << 32, 1 << 32):sum(1) end)
    assert.equal("0,1073741824", shape(ampl.zeros(0, 1 << 30)))
    refuses("ENOMEM", {"limit"}, function() return ampl.zeros(0, 1 << 50):sum(1) end)
  end)
  it("are refused where a view is made", function()
    local one = ampl.ones(1)
    refuses("ESHAPE", {"expand", "2147483648, 2147483648, 4"}, function() return one:expand(1 << 31, 1 << 31, 4) end)
    refuses("ESHAPE", {"expand"}, function() return ampl.zeros(0, 1):expand(0, math.maxinteger) end)
    refuses("ESHAPE", {"view"}, function() return ampl.zeros(0):view(0, 1 << 32, 1 << 32) end)
    refuses("ESHAPE", {"reshape"}, function() return ampl.zeros(0):reshape(1 << 32, 0, 1 << 32) end)
    refuses("ESHAPE", {"unflatten"}, function() return ampl.zeros(3, 0):unflatten(2, {0, 1 << 33, 1 << 33}) end)
    local wide = one:expand(1 << 29, 1 << 29)
    refuses("ESHAPE", {}, function() return wide:unfold(1, 1 << 28, 1) end)
    assert.equal("536870912,536870912", shape(wide))
  end)
  it("are refused where operands broadcast", function()
    local a = ampl.ones(1):expand(1 << 32)
    local column, row = a:unsqueeze(2), a:view(1, -1)
    local mask = ampl.ones(1, {dtype = "bool"}):expand(1 << 32):unsqueeze(2)
    for name, f in pairs {add = function() return column + row end, gt = function() return column:gt(row) end,
                          where = function() return ampl.where(mask, row, 0) end,
                          masked_fill = function() return row:masked_fill(mask, 1) end} do
      refuses("ESHAPE", {name}, f)
    end
    refuses("ESHAPE ENOMEM", {"outer"}, function() return ampl.outer(a, a) end)
    refuses("ESHAPE ENOMEM", {"matmul"}, function() return ampl.matmul(column, row) end)
  end)
  it("are refused where a table stands for them", function()
    local t = {}
    for i = 1, 256 do t[i] = 0 end
    for _ = 1, 7 do
      local u = {}
      for i = 1, 256 do u[i] = t end
      t = u
      if _ >= 4 then refuses("ENOMEM", {"tensor", "limit"}, function() return ampl.tensor(t) end) end
    end
  end)
  it("are not walked through where they have no memory", function()
    local x = ampl.ones(1):expand(1 << 50)
    for _, name in ipairs {"sum", "mean", "amax", "any", "argmax", "cumsum", "sort", "norm", "median", "nonzero"} do
      refuses("ENOMEM", {name, "limit"}, function() return ampl[name](x, name == "cumsum" and 1 or nil) end)
    end
    for _, f in ipairs {function() return x:split(1) end, function() return x:unbind() end,
                        function() return x:chunk(math.maxinteger) end,
                        function() return ampl.zeros(0):chunk(math.maxinteger) end} do
      refuses("EVALUE", {"pieces"}, f)
    end
    assert.equal(2, #x:chunk(2))
    assert.equal(1, x[1 << 49]:item())
    assert.equal("3", shape(x:slice(1, 1, 3)))
  end)
end)

describe("factors and counts", function()
  it("whose product wraps are refused by name", function()
    for _, r in ipairs {1 << 31, 1 << 32, 1 << 33, big, math.maxinteger, -1, 0} do
      refuses("EVALUE ESHAPE", {"upscale_factor"}, function() return F.pixel_shuffle(ampl.zeros(1, 4, 2, 2), r) end)
      refuses("EVALUE ESHAPE", {"upscale_factor"}, function() return nn.PixelShuffle(r)(ampl.zeros(1, 4, 2, 2)) end)
    end
    refuses("EVALUE", {"upscale_factor"}, function() return F.pixel_shuffle(ampl.zeros(0, 0, 1 << 40, 2), 1 << 31) end)
    refuses("ESHAPE", {"tile"}, function() return ampl.ones(2):tile(big) end)
    refuses("ESHAPE", {"repeat"}, function() return ampl.ones(3):repeat_interleave(big) end)
    refuses("EVALUE", {"repeats"}, function() return ampl.ones(3):repeat_interleave(1e300) end)
    refuses("ESHAPE", {"one_hot"}, function() return F.one_hot(ampl.tensor {1, 2, 3}, big) end)
    for _, n in ipairs(huge) do
      refuses("EVALUE ESHAPE ENOMEM EINDEX", {"topk"}, function() return ampl.ones(3):topk(n) end)
      refuses("EVALUE ESHAPE ENOMEM EINDEX", {"histc"}, function() return ampl.ones(3):histc(n) end)
      refuses("EVALUE ESHAPE ENOMEM EINDEX", {"eye"}, function() return ampl.eye(n) end)
      refuses("EVALUE ESHAPE ENOMEM EINDEX", {"linspace"}, function() return ampl.linspace(0, 1, n) end)
      refuses("EVALUE ESHAPE ENOMEM EINDEX", {"randperm"}, function() return ampl.randperm(n) end)
    end
  end)
  it("of a cut or a turn may be any integer", function()
    local x = ampl.arange(4):float()
    x:requires_grad_(true)
    for _, n in ipairs(huge) do
      local y = x:roll(n, 1)
      y:sum():backward()
      assert.equal(6, y:sum():item())
    end
    assert.equal(3, x:roll(math.mininteger + 1, 1)[4]:item() * 0 + 3)
    assert.equal(0, ampl.ones(3, 3):tril(math.mininteger + 1):sum():item())
    assert.equal(9, ampl.ones(3, 3):tril(math.maxinteger):sum():item())
    assert.equal(0, ampl.ones(3, 3):triu(math.maxinteger):sum():item())
    assert.equal(0, ampl.ones(3, 3):diag(math.maxinteger):numel())
    refuses("ESHAPE EVALUE", {"diag"}, function() return ampl.ones(3):diag(math.maxinteger) end)
    assert.equal("1", shape(ampl.arange(4):slice(1, 1, math.maxinteger, math.maxinteger)))
  end)
end)

describe("windows", function()
  local image, line = ampl.ones(1, 1, 4, 4), ampl.ones(1, 1, 4)
  it("name the option that is too large", function()
    local w = ampl.ones(1, 1, 2, 2)
    for _, n in ipairs(huge) do
      local codes = "EVALUE ESHAPE"
      for _, option in ipairs {"padding", "dilation", "stride"} do
        refuses(codes, {option}, function() return F.unfold(image, 3, {[option] = n}) end)
        refuses(codes, {option}, function() return F.fold(ampl.ones(1, 4, 9), 4, 2, {[option] = n}) end)
        refuses(codes, {option}, function() return F.conv2d(image, w, {[option] = n}) end)
        refuses(codes, {option}, function() return F.conv_transpose2d(image, w, {[option] = n}) end)
        refuses(codes, {option}, function() return F.max_pool2d(image, 2, {[option] = n}) end)
        refuses(codes, {option}, function() return F.max_pool1d(line, 2, {[option] = n}) end)
        if option ~= "dilation" then
          refuses(codes, {option}, function() return F.avg_pool2d(image, 2, {[option] = n}) end)
        end
      end
      for _, pool in ipairs {"max_pool2d", "avg_pool2d", "max_pool1d", "avg_pool1d"} do
        local x = pool:find("1d") and line or image
        refuses(codes, {"kernel_size"}, function() return F[pool](x, n) end)
      end
      refuses(codes, {"kernel_size"}, function() return F.unfold(image, n) end)
      refuses("EVALUE ESHAPE ENOMEM", {"adaptive_avg_pool2d"}, function() return F.adaptive_avg_pool2d(image, n) end)
      if n ~= -1 then
        refuses("EVALUE ESHAPE ENOMEM", {"pad"}, function() return F.pad(ampl.zeros(3), {n, n}) end)
        refuses("EVALUE ESHAPE ENOMEM", {"pad"}, function()
          return F.pad(image, {n, n, n, n}, {mode = "reflect"})
        end)
      end
    end
    refuses("EVALUE", {"groups"}, function()
      return F.conv2d(ampl.zeros(1, 0, 4, 4), ampl.zeros(0, 1, 2, 2), {groups = 0})
    end)
    refuses("EARG", {"kernel_size"}, function() return F.max_pool2d(image, {}) end)
    refuses("EARG", {"kernel_size"}, function() return F.unfold(image, {}) end)
    for _, n in ipairs(huge) do
      refuses("EVALUE", {"output_size"}, function() return F.fold(ampl.ones(1, 4, 9), {n, 4}, 2) end)
    end
    refuses("EARG", {"output_size"}, function() return F.adaptive_avg_pool2d(image, {}) end)
  end)
  it("whose options are large and fit are counted exactly", function()
    assert.equal("1,1,1,1", shape(F.conv2d(image, ampl.ones(1, 1, 2, 2), {stride = (1 << 31) - 1})))
    assert.equal("1,4,1", shape(F.unfold(image, 2, {stride = (1 << 31) - 1})))
    assert.equal("1,1,1,1", shape(F.max_pool2d(image, 3, {stride = (1 << 31) - 1})))
  end)
end)

describe("dimensions without elements", function()
  local zeros = ampl.zeros
  local function labels(...) return zeros({...}, {dtype = "i64"}) end
  it("give empty results of the right shape, with gradients", function()
    local cases = {
      {"2,0", F.cross_entropy, zeros(2, 4, 0), zeros(2, 0, {dtype = "i64"}), {reduction = "none"}},
      {"2,0", F.nll_loss, zeros(2, 4, 0), zeros(2, 0, {dtype = "i64"}), {reduction = "none"}},
      {"0", F.cross_entropy, zeros(0, 4), labels(0), {reduction = "none"}},
      {"2,0,3", F.softmax, zeros(2, 0, 3), 2}, {"2,0,3", F.log_softmax, zeros(2, 0, 3), 1},
      {"1073741824,0", F.softmax, zeros(1 << 30, 0), 2}, {"2,0", F.layer_norm, zeros(2, 0), {0}},
      {"2,0", F.normalize, zeros(2, 0)}, {"2,4,0", F.group_norm, zeros(2, 4, 0), 2},
      {"0,4,3", F.batch_norm, zeros(0, 4, 3), zeros(4), ampl.ones(4)},
      {"2,0", ampl.cumsum, zeros(2, 0), 2}, {"0,3", ampl.cumprod, zeros(0, 3), 2},
      {"2,0", function(x) return (x:sort()) end, zeros(2, 0)},
      {"0,2", function(x) return (x:topk(2)) end, zeros(0, 3)},
      {"0,3", ampl.matmul, zeros(0, 2), ampl.ones(2, 3)}, {"2,3", ampl.matmul, zeros(2, 0), ampl.ones(0, 3)},
      {"2,3", F.linear, zeros(2, 0), ampl.ones(3, 0)},
      {"0,2,3,3", F.conv2d, zeros(0, 1, 4, 4), ampl.ones(2, 1, 2, 2)},
      {"0,1,2,2", F.max_pool2d, zeros(0, 1, 4, 4), 2}, {"0,1,2,2", F.avg_pool2d, zeros(0, 1, 4, 4), 2},
      {"2,3,0", F.scaled_dot_product_attention, zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 0)},
      {"2,3,6", F.scaled_dot_product_attention, zeros(2, 3, 4), zeros(2, 0, 4), zeros(2, 0, 6)},
      {"0,3", ampl.index_select, zeros(2, 3), 1, labels(0)}, {"0,2", ampl.gather, zeros(3, 2), 1, labels(0, 2)},
      {"2,0", ampl.flip, zeros(2, 0), 1}, {"2,0", ampl.roll, zeros(2, 0), 1, 2},
      {"3", function(x) return x:sum(1) end, zeros(0, 3)}, {"0", function(x) return x:prod(2) end, zeros(0, 3)},
      {"0", function(x) return (x:max(2)) end, zeros(0, 3)}, {"3", function(x) return x:mean(1) end, zeros(0, 3)},
      {"0", F.triplet_margin_loss, zeros(0, 3), zeros(0, 3), zeros(0, 3), {reduction = "none"}},
      {"0,3", F.mse_loss, zeros(0, 3), zeros(0, 3), {reduction = "none"}},
    }
    for i, c in ipairs(cases) do
      if c[3].dtype == "f32" then c[3]:requires_grad_(true) end
      local y = c[2](table.unpack(c, 3))
      assert.equal(c[1], shape(y), "case " .. i)
      if y.requires_grad then
        y:sum():backward()
        assert.equal(shape(c[3]), shape(c[3].grad), "gradient of case " .. i)
      end
    end
  end)
  it("give a mean of NaN, and sums of 0", function()
    local function number(f, ...) return f(...):item() end
    for _, f in ipairs {F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss} do
      local mean = number(f, zeros(0, 3), zeros(0, 3))
      assert(mean ~= mean)
      assert.equal(0, number(f, zeros(0, 3), zeros(0, 3), {reduction = "sum"}))
    end
    local mean = number(F.cross_entropy, zeros(2, 4, 0), zeros(2, 0, {dtype = "i64"}))
    assert(mean ~= mean)
    assert.equal(0, number(F.cross_entropy, zeros(0, 4), labels(0), {reduction = "sum"}))
    refuses("ESHAPE", {"amax", "empty"}, function() return zeros(2, 0):amax(2) end)
    refuses("ESHAPE", {"argmax"}, function() return zeros(0):argmax() end)
  end)
end)
