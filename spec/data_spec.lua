-- ampl.data: data sets, the loader's batches and order, and its exact resume.

local ampl = require "ampl"
local data = ampl.data

local function epoch(loader)            -- the batches of an epoch, as lists
  local out = {}
  for x, y in loader do out[#out + 1] = {x:totable(), y and y:totable()} end
  return out
end

local function raises(code, f, ...)
  local ok, e = pcall(f, ...)
  assert.is_false(ok)
  assert.equal(code, e.code)
end

local function set(n)
  return data.TensorDataset(ampl.arange(1, n + 1, {dtype = "f32"}), ampl.arange(101, 101 + n))
end

describe("TensorDataset", function()
  it("gives rows", function()
    local d = data.TensorDataset(ampl.tensor({{1, 2}, {3, 4}, {5, 6}}), ampl.tensor({7, 8, 9}))
    assert.equal(3, #d)
    local x, y = d:get(2)
    assert.same({3, 4}, x:totable())
    assert.equal(8, y:item())
  end)

  it("refuses tensors of different lengths", function()
    raises("ESHAPE", data.TensorDataset, ampl.zeros(3), ampl.zeros(2))
    raises("ESHAPE", data.TensorDataset, ampl.tensor(1))
    raises("EARG", data.TensorDataset)
    raises("EARG", data.TensorDataset, {1, 2})
  end)
end)

describe("DataLoader", function()
  it("cuts a data set into batches", function()
    local loader = data.DataLoader(set(5), {batch_size = 2})
    assert.equal(3, #loader)
    local got = epoch(loader)
    assert.same({{{1, 2}, {101, 102}}, {{3, 4}, {103, 104}}, {{5}, {105}}}, got)
    assert.same(got, epoch(loader))
    loader = data.DataLoader(set(5), {batch_size = 2, drop_last = true})
    assert.equal(2, #loader)
    assert.equal(2, #epoch(loader))
  end)

  it("gives batches that are the user's own", function()
    local d = set(4)
    for x in data.DataLoader(d, {batch_size = 2}) do x:zero_() end
    assert.same({1, 2, 3, 4}, d.tensors[1]:totable())
  end)

  it("works as a function of a loop, too", function()
    local n = 0
    for _ in data.DataLoader(set(5))() do n = n + 1 end
    assert.equal(5, n)
  end)

  it("shuffles: everything once, another order each epoch, the same for the same seed", function()
    local function order(loader)
      local list = {}
      for x in loader do
        for _, v in ipairs(x:totable()) do list[#list + 1] = math.tointeger(v) end
      end
      return list
    end
    local a = data.DataLoader(set(100), {batch_size = 7, shuffle = true, seed = 3})
    local b = data.DataLoader(set(100), {batch_size = 7, shuffle = true, seed = 3})
    local c = data.DataLoader(set(100), {batch_size = 7, shuffle = true, seed = 4})
    local first, second = order(a), order(a)
    assert.same(first, order(b))
    assert.is_not.same(first, second)
    assert.is_not.same(first, order(c))
    table.sort(second)
    for i = 1, 100 do assert.equal(i, second[i]) end
  end)

  it("takes nothing from the program's random stream when it has a seed", function()
    ampl.manual_seed(5)
    local want = ampl.rand(3):totable()
    ampl.manual_seed(5)
    epoch(data.DataLoader(set(10), {shuffle = true, seed = 1}))
    assert.same(want, ampl.rand(3):totable())
  end)

  it("is repeatable without a seed by manual_seed", function()
    local function once(seed)
      ampl.manual_seed(seed)
      return epoch(data.DataLoader(set(30), {batch_size = 30, shuffle = true}))
    end
    assert.same(once(1), once(1))
    assert.is_not.same(once(1), once(2))
  end)

  it("takes a sampler", function()
    local loader = data.DataLoader(set(5), {batch_size = 2, sampler = {3, 1, 2}})
    assert.same({{{3, 1}, {103, 101}}, {{2}, {102}}}, epoch(loader))
    local positions = ampl.tensor({5, 5})
    assert.same({{{5, 5}, {105, 105}}}, epoch(data.DataLoader(set(5), {batch_size = 2, sampler = positions})))
    local epochs = {}
    loader = data.DataLoader(set(5), {batch_size = 5, sampler = function(e)
      epochs[#epochs + 1] = e
      return {e}
    end})
    assert.same({{{1}, {101}}}, epoch(loader))
    assert.same({{{2}, {102}}}, epoch(loader))
    assert.equal(1, epochs[1])
  end)

  it("asks any data set with __len and get", function()
    local function get(_, i) return ampl.full({2}, i), i, "s" .. i end
    local d = setmetatable({get = get}, {__len = function() return 3 end})
    local got = {}
    for x, y, s in data.DataLoader(d, {batch_size = 2}) do got[#got + 1] = {x:totable(), y:totable(), s} end
    assert.same({{{{1, 1}, {2, 2}}, {1, 2}, {"s1", "s2"}}, {{{3, 3}}, {3}, {"s3"}}}, got)
    local seen = {}
    local collate = function(samples)
      seen[#seen + 1] = #samples
      return samples[1][2]
    end
    local ys = {}
    for y in data.DataLoader(d, {batch_size = 2, collate = collate}) do ys[#ys + 1] = y end
    assert.same({2, 1}, seen)
    assert.same({1, 3}, ys)
  end)

  it("goes on with the very next batch after load_state_dict", function()
    local options = {batch_size = 3, shuffle = true, seed = 9}
    for stop = 0, 10 do
      local a = data.DataLoader(set(13), options)
      local want, state, n = {}, nil, 0
      if stop == 0 then state = a:state_dict() end
      for _ = 1, 3 do
        for x in a do
          n = n + 1
          if n > stop then want[#want + 1] = x:totable() end
          if n == stop then state = a:state_dict() end
        end
      end
      local b = data.DataLoader(set(13), {batch_size = 3, shuffle = true, seed = 77})
      b:load_state_dict(state)
      local got = {}
      for _ = state.epoch, 3 do
        for x in b do got[#got + 1] = x:totable() end
      end
      assert.same(want, got, "stopped after batch " .. stop)
    end
  end)

  it("starts another epoch after a loop that was left", function()
    local a = data.DataLoader(set(10), {batch_size = 5, shuffle = true, seed = 1})
    local seen = {}
    for _ = 1, 2 do
      for x in a do
        seen[#seen + 1] = x:totable()
        if #seen > 0 then break end
      end
    end
    assert.equal(2, #seen)
    assert.is_not.same(seen[1], seen[2])
    assert.equal(2, a.epoch)
  end)

  it("refuses what makes no sense", function()
    raises("EARG", data.DataLoader, 5)
    raises("EVALUE", data.DataLoader, set(3), {batch_size = 0})
    raises("EARG", data.DataLoader, set(3), {batchsize = 2})
    raises("EARG", data.DataLoader, set(3), {batch_size = 1.5})
    raises("EARG", data.DataLoader, set(3), {shuffle = true, sampler = {1}})
    raises("EUNSUPPORTED", data.DataLoader, set(3), {workers = 2})
    raises("EARG", function() data.DataLoader(set(3)):load_state_dict({}) end)
  end)

  it("leaves no memory behind", function()
    local loader = data.DataLoader(set(1000), {batch_size = 10, shuffle = true, seed = 2})
    local function round()
      for _ in loader do end                    -- luacheck: ignore 542
      collectgarbage()
      collectgarbage()
      return ampl.memory().live
    end
    round()
    local before = round()
    assert.equal(before, round())
  end)
end)

describe("data.text", function()
  local path

  setup(function()
    path = os.tmpname()
    local f = assert(io.open(path, "wb"))
    f:write("hello wörld, hello")
    f:close()
  end)
  teardown(function() os.remove(path) end)

  it("makes windows of bytes", function()
    local d = assert(data.text(path, {seq_len = 4}))
    assert.equal(256, d.vocab)
    assert.equal(4, #d)
    local x, y = d:get(1)
    assert.equal("hell", d:decode(x))
    assert.equal("ello", d:decode(y))
    assert.same({105, 102, 109, 109}, x:totable())
    x, y = d:get(2)
    assert.equal("o w\xc3", d:decode(x))
    assert.equal(" w\xc3\xb6", d:decode(y))
    assert.equal("i64", x.dtype)
  end)

  it("makes windows of characters", function()
    local d = assert(data.text(path, {seq_len = 5, stride = 1, tokenizer = "char"}))
    assert.equal(10, d.vocab)
    local x = d:get(5)
    assert.equal("o wör", d:decode(x))
  end)

  it("goes through a loader", function()
    local d = assert(data.text(path, {seq_len = 3, stride = 2}))
    for x, y in data.DataLoader(d, {batch_size = 4, shuffle = true, seed = 1}) do
      for i = 1, #x do
        assert.equal(d:decode(x[i]):sub(2), d:decode(y[i]):sub(1, 2))
      end
    end
  end)

  it("refuses what does not work", function()
    local d, message, code = data.text("/nowhere")
    assert.is_nil(d)
    assert.equal("EIO", code)
    assert(message:find("nowhere"))
    raises("EVALUE", data.text, path, {seq_len = 100})
    raises("EVALUE", data.text, path, {seq_len = 0})
    raises("EARG", data.text, path, {tokenizer = "word"})
  end)
end)
