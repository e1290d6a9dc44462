-- Data sets and loaders: what does not fit in one batch, or is no data set, is told; what a user's function raises
-- comes out unchanged.

local ampl = require "ampl"
local raises = require "spec.support.raises"
local data = ampl.data
local DataLoader = data.DataLoader

-- A data set of n samples, by a function from position to values.
local function set(n, get)
  return setmetatable({get = function(_, i) return get(i) end}, {__len = function() return n end})
end

local function run(dataset, options)
  for _ in DataLoader(dataset, options) do end          -- luacheck: ignore 542
end

describe("samples", function()
  it("need as many values each, none of them nil", function()
    local function some(i) return ampl.ones(2), i < 3 and i or nil end
    raises("EVALUE", {"get(3)", "1 value", "get(1)", "2"}, run, set(3, some), {batch_size = 3})
    raises("EVALUE", {"get(2)", "2 values", "get(1)", "1"}, run, set(2, function(i) return i, i > 1 and i or nil end),
           {batch_size = 2})
    raises("EVALUE", {"value 2", "get(2)", "nil"}, run, set(2, function(i) return i, i < 2 and i or nil, i end),
           {batch_size = 2})
    raises("EVALUE", {"value 1", "get(1)", "nil"}, run, set(1, function() return nil, 1 end))
    raises("EVALUE", {"get(1)", "nil"}, run, set(1, function() end))
    local n = 0
    for _, y in DataLoader(set(2, function(i) return i, nil end)) do
      n = n + 1
      assert.is_nil(y)
    end
    assert.equal(2, n)
  end)

  it("need one shape and one kind for a batch", function()
    raises("ESHAPE", {"value 1", "get(2)", "{2}", "get(1)", "{1}", "collate"}, run,
           set(2, function(i) return ampl.ones(i) end), {batch_size = 2})
    raises("ESHAPE", {"value 2", "get(4)", "{}", "get(3)", "{1}"}, run,
           set(4, function(i) return 1, i < 4 and ampl.ones(1) or ampl.tensor(1) end),
           {batch_size = 2, sampler = {3, 4}})
    raises("EVALUE", {"value 1", "get(2)", '"x"', "get(1)", "1"}, run,
           set(2, function(i) return i == 1 and 1 or "x" end), {batch_size = 2})
    raises("EVALUE", {"value 1", "get(2)", "true", "get(1)", "1"}, run,
           set(2, function(i) return i == 1 and 1 or true end), {batch_size = 2})
    run(set(2, function(i) return ampl.ones(i) end), {batch_size = 2, collate = function(s) return #s end})
  end)

  it("keep whole numbers whole", function()
    for _, y in DataLoader(set(2, function(i) return i, 9007199254740992 + i end), {batch_size = 2}) do
      assert.same({9007199254740993, 9007199254740994}, y:totable())
    end
  end)

  it("are asked for by number", function()
    local d = data.TensorDataset(ampl.ones(3))
    raises("EARG", {"TensorDataset", "get", '"shape"'}, d.get, d, "shape")
    raises("EARG", {"TensorDataset", "get", "1.5"}, d.get, d, 1.5)
    raises("EARG", {"TensorDataset", "get", "nil"}, d.get, d)
    raises("EINDEX", {"TensorDataset", "get(4)", "3 samples"}, d.get, d, 4)
    raises("EINDEX", {"TensorDataset", "get(0)"}, d.get, d, 0)
    assert.equal(1, d:get(-1):item())
  end)
end)

describe("data sets", function()
  it("have __len and get", function()
    raises("EARG", {"__len"}, DataLoader, {get = function() return 1 end})
    raises("EARG", {"__len"}, DataLoader, setmetatable({get = function() return 1 end}, {}))
    raises("EARG", {"__len", "get(i)"}, DataLoader, {})
    raises("EARG", {"dataset", "5"}, DataLoader, 5)
    raises("EARG", {"dataset"}, DataLoader)
    raises("EARG", {"dataset"}, DataLoader, ampl.ones(2))
    for _, n in ipairs {-1, 1.5, "x", false} do
      raises("EVALUE", {"__len", "number of samples"}, run, set(n, function(i) return i end))
    end
    raises("EARG", {"TensorDataset", "argument 2"}, data.TensorDataset, ampl.ones(1), io.stdout)
    local get_batch = {get_batch = function(_, at) return at end}
    setmetatable(get_batch, {__len = function() return 2 end})
    raises("EARG", {"collate", "get(i)"}, run, get_batch, {collate = function() return 1 end})
  end)

  it("may be empty or of one sample", function()
    assert.equal(0, #DataLoader(set(0, error)))
    run(set(0, error), {shuffle = true, batch_size = 3})
    assert.equal(1, #DataLoader(set(1, error), {batch_size = math.maxinteger}))
    assert.equal(0, #DataLoader(set(1, error), {batch_size = math.maxinteger, drop_last = true}))
    local n = 0
    for x in DataLoader(set(3, function(i) return i end), {batch_size = math.maxinteger}) do n = n + #x end
    assert.equal(3, n)
  end)

  it("and loaders print what they are", function()
    local d = data.TensorDataset(ampl.ones(4, 2), ampl.zeros(4, {dtype = "i64"}))
    assert.equal("TensorDataset(f32 {4, 2}, i64 {4})", tostring(d))
    assert.equal("DataLoader(TensorDataset(f32 {4, 2}, i64 {4}), batch_size = 2, shuffle = true)",
                 tostring(DataLoader(d, {batch_size = 2, shuffle = true})))
    assert.equal("DataLoader(a data set, batch_size = 1, a sampler, drop_last = true)",
                 tostring(DataLoader(set(2, error), {sampler = {1}, drop_last = true})))
    d.tensors[2]:free()
    assert.equal("TensorDataset(f32 {4, 2}, freed)", tostring(d))
  end)
end)

describe("errors of the user's functions", function()
  local mine = setmetatable({}, {__tostring = function() return "mine" end})
  local function fail() error(mine) end
  local function same(f, ...)
    local ok, e = pcall(f, ...)
    assert.is_false(ok)
    assert(rawequal(e, mine), "another error: " .. tostring(e))
  end

  it("come out unchanged", function()
    local function one(i) return i end
    same(run, set(1, fail))
    same(run, set(1, one), {collate = fail})
    same(run, set(1, one), {sampler = fail})
    same(run, setmetatable({get = one}, {__len = fail}))
    same(run, setmetatable({get_batch = fail}, {__len = function() return 1 end}))
    same(tostring, DataLoader(setmetatable({get = one}, {__len = function() return 1 end, __tostring = fail})))
  end)

  it("leave the loader usable", function()
    local bad = true
    local loader = DataLoader(set(3, function(i) if bad and i == 2 then fail() end return i end), {batch_size = 1})
    same(function() for _ in loader do end end)         -- luacheck: ignore 542
    bad = false
    local got = {}
    for x in loader do got[#got + 1] = x:item() end
    assert.same({1, 2, 3}, got)
  end)

  it("that give nil are told", function()
    raises("EVALUE", {"collate gave nil"}, run, set(1, function(i) return i end), {collate = function() end})
    raises("EVALUE", {"get_batch gave nil"}, run,
           setmetatable({get_batch = function() end}, {__len = function() return 1 end}))
    raises("EARG", {"sampler", "nil"}, run, set(1, function(i) return i end), {sampler = function() end})
  end)
end)

describe("samplers", function()
  local function sampled(sampler) return run, set(5, function(i) return i end), {sampler = sampler} end

  it("give positions of the data set", function()
    raises("EINDEX", {"entry 2", "position 6", "1 to 5"}, sampled({1, 6}))
    raises("EINDEX", {"entry 1", "position 0"}, sampled({0}))
    raises("EINDEX", {"entry 1", "position -1"}, sampled(ampl.tensor({-1})))
    raises("EARG", {"entry 1", "1.5"}, sampled({1.5}))
    raises("EARG", {"entry 2", '"x"'}, sampled({1, "x"}))
    raises("EARG", {"entry 1", "0.5"}, sampled(ampl.tensor({0.5})))
    raises("ESHAPE", {"2 dimensions"}, sampled(ampl.ones(2, 2)))
    raises("EARG", {"sampler", '"x"'}, sampled("x"))
    raises("EARG", {"sampler", "5"}, sampled(5))
    raises("EINDEX", {"entry 1", "position 9"}, sampled(function() return {9} end))
    local got = {}
    for x in DataLoader(set(5, function(i) return i end), {sampler = ampl.tensor({2, 2.0, 5})}) do
      got[#got + 1] = x:item()
    end
    assert.same({2, 2, 5}, got)
    assert.equal(0, #DataLoader(set(5, error), {sampler = {}}))
  end)
end)

describe("loops", function()
  it("do not run into each other", function()
    local loader = DataLoader(set(4, function(i) return ampl.tensor({i}) end))
    raises("ESTATE", {"another loop"}, function()
      for _ in loader do
        for _ in loader do end                          -- luacheck: ignore 542
      end
    end)
    raises("ESTATE", {"another loop"}, function()
      for _ in loader do
        for _ in loader do break end                    -- luacheck: ignore 512
      end
    end)
    local n = 0
    for _ in loader do n = n + 1 end
    assert.equal(4, n)
  end)

  it("take the states they have given", function()
    local loader = DataLoader(set(4, function(i) return i end), {sampler = function() return {4, 3, 2, 1} end})
    for _ in loader do break end                        -- luacheck: ignore 512
    local s = loader:state_dict()
    local other = DataLoader(set(4, function(i) return i end), {sampler = function() return {1, 2, 3, 4} end})
    other:load_state_dict(s)
    local got = {}
    for x in other do got[#got + 1] = x:item() end
    assert.same({3, 2, 1}, got)
    for _, bad in ipairs {{epoch = 0, position = 0}, {epoch = 1, position = -1}, {epoch = 1.5, position = 0},
                          {epoch = "1", position = 0}, {epoch = 1, position = 0, seed = "x"}, {}} do
      raises("EARG", {"load_state_dict", "state_dict"}, other.load_state_dict, other, bad)
    end
    raises("EARG", {"load_state_dict", "5"}, other.load_state_dict, other, 5)
    raises("EINDEX", {"position 9"}, other.load_state_dict, other, {epoch = 1, position = 0, order = {9}})
  end)
end)
