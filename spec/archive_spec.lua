-- ampl.safetensors, data.idx and data.csv: what is written comes back, what is damaged is refused and named, and a file
-- is the old one or the new one whenever its writer dies.

local ampl = require "ampl"
local lfs = require "lfs"
local folders = require "spec.support.folders"
local shell = require "spec.support.shell"
local tensors = require "spec.support.tensors"
local reason = require "spec.support.pending"

local folder

local function path(name) return folder .. "/" .. name end

local function put(name, bytes)
  local f = assert(io.open(path(name), "wb"))
  f:write(bytes)
  f:close()
  return path(name)
end

local function get(name)
  local f = assert(io.open(path(name), "rb"))
  local bytes = f:read("a")
  f:close()
  return bytes
end

local function files()
  local list = {}
  for name in lfs.dir(folder) do
    if name ~= "." and name ~= ".." then list[#list + 1] = name end
  end
  return list
end

local function safetensors_bytes(header, data) return string.pack("<s8", header) .. (data or "") end

-- nil, a message that holds `says`, and the code.
local function refused(code, says, f, ...)
  local value, message, got = f(...)
  assert.is_nil(value)
  assert.equal(code, got)
  assert(message:find(says, 1, true), ("%q should say %q"):format(message, says))
end

setup(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(lfs.mkdir(folder))
end)

teardown(function()
  for _, name in ipairs(files()) do os.remove(path(name)) end
  lfs.rmdir(folder)
end)

describe("safetensors", function()
  local save, load = ampl.safetensors.save, ampl.safetensors.load

  it("gives back every dtype, shape and layout, and the metadata", function()
    local all = {}
    for _, dtype in ipairs {"f32", "f16", "bf16", "f64", "i64", "i32", "u8", "bool"} do
      all[dtype] = ampl.tensor({{1, 0, 1}, {0, 1, 1}}, {dtype = dtype})
      all[dtype .. ".transposed"] = all[dtype]:transpose(1, 2)
      all[dtype .. ".scalar"] = ampl.tensor(1, {dtype = dtype})
      all[dtype .. ".empty"] = ampl.zeros(2, 0, {dtype = dtype})
    end
    all["a name with \"quotes\", \\ and é"] = ampl.tensor({0.5, -2.25})
    all[""] = ampl.tensor({1.5})
    assert.is_true(save(path("all"), all, {format = "pt", ["ключ"] = "значение"}))
    local got, metadata = load(path("all"))
    assert.same({format = "pt", ["ключ"] = "значение"}, metadata)
    local n = 0
    for name, t in pairs(got) do
      n = n + 1
      assert.equal(all[name].dtype, t.dtype)
      assert.is_nil(tensors.compare(t, all[name], all[name].dtype, 0))
      assert.is_true(t:is_contiguous())
    end
    for _ in pairs(all) do n = n - 1 end
    assert.equal(0, n)
  end)

  it("writes the same bytes in every order", function()
    local a, b = {}, {}
    for i = 1, 50 do a["t" .. i] = ampl.tensor({i}) end
    for i = 50, 1, -1 do b["t" .. i] = a["t" .. i] end
    assert(save(path("a"), a, {x = "1", y = "2"}))
    assert(save(path("b"), b, {y = "2", x = "1"}))
    assert.equal(get("a"), get("b"))
  end)

  it("reads what others write", function()
    local p = folders.data("weights/resnet20_cifar10.safetensors")
    if not p then pending(reason("data")) end
    local t = assert(load(p))
    assert.same({16, 3, 3, 3}, t["conv1.weight"].shape)
    assert.equal("f32", t["conv1.weight"].dtype)
  end)

  it("names what is wrong with a file", function()
    local one = '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
    local cases = {
      {'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{}}', "\0\0", "duplicate"},
      {'{"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}', "\0\0\0", "hole"},
      {'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
       "\0\0\0", "overlap"},
      {one, "\0", "ends at byte 2"},
      {one, "\0\0\0", "behind the last tensor"},
      {'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,2]}}', "\0\0", "needs 8 bytes"},
      {"[]", "", "not with '{'"},
      {"{", "", "header of 1 bytes"},
      {'{"__metadata__":{"a":{}}}', "", "no string"},
    }
    for _, c in ipairs(cases) do refused("EFORMAT", c[3], load, put("bad", safetensors_bytes(c[1], c[2]))) end
    refused("EFORMAT", "at most 100000000", load, put("bad", string.pack("<I8", 100000001) .. "{}"))
    refused("EUNSUPPORTED", "F8_E5M2", load,
            put("bad", safetensors_bytes('{"a":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[0,1]}}', "\0")))
    refused("EIO", "No such file", load, path("nowhere"))
  end)

  it("refuses every cut of a file, and survives every change of its header", function()
    assert(save(path("good"), {weight = ampl.ones(3, 4), bias = ampl.zeros(3, {dtype = "i64"})}, {k = "v"}))
    local good = get("good")
    for i = 0, #good - 1 do refused("EFORMAT", "cut", load, put("cut", good:sub(1, i))) end
    local data = #good - 12 * 4 - 3 * 8
    for i = 1, data do
      for _, byte in ipairs {0, 34, 48, 57, 123, 125, 255} do
        local t, message, code = load(put("bent", good:sub(1, i - 1) .. string.char(byte) .. good:sub(i + 1)))
        assert(type(t) == "table" or code == "EFORMAT" or code == "EUNSUPPORTED", message)
      end
    end
  end)

  it("keeps the old file when the new one cannot be written", function()
    assert(save(path("kept"), {a = ampl.ones(3)}))
    local before = get("kept")
    assert.error(function() save(path("kept"), {a = 1}) end)
    refused("EIO", "No space left", save, "/dev/full", {a = ampl.ones(3)})
    refused("EIO", "errno", save, path("no/folder"), {a = ampl.ones(3)})
    assert.equal(before, get("kept"))
  end)

  it("is the old file or the new one when its writer is killed", function()
    local script = put("writer.lua", ([[
      local ampl = require "ampl"
      local a, b = ampl.zeros(1 << 20), ampl.ones(1 << 20)
      while true do
        assert(ampl.safetensors.save(%q, {x = a}))
        assert(ampl.safetensors.save(%q, {x = b}))
      end]]):format(path("live"), path("live")))
    local program = shell.program()
    for i = 1, 12 do
      local delay = 0.15 + i * 0.013
      os.execute(("timeout -s KILL %.3f %s %s >/dev/null 2>&1"):format(delay, program, script))
      local t, message = load(path("live"))
      if lfs.attributes(path("live")) then
        assert(t, message)
        local x = t.x:sum():item()
        assert(x == 0 or x == 1 << 20, "a mixture: " .. x)
      end
    end
    assert(lfs.attributes(path("live")), "no file was written by " .. program)
    local left
    for _ = 1, 100 do                   -- the last one killed may hold its lock while it is taken apart
      assert(save(path("live"), {x = ampl.ones(1)}))
      left = nil
      for _, name in ipairs(files()) do left = left or name:match(".*%.tmp$") end
      if not left then break end
      os.execute("sleep 0.1")
    end
    assert(not left, left)
  end)

  it("does not grow with the number of saves", function()
    local t = {x = ampl.ones(1000), y = ampl.ones(10, 10):transpose(1, 2)}
    local function live()
      collectgarbage()
      return ampl.memory().live
    end
    for _ = 1, 10 do assert(save(path("loop"), t)) end
    local before = live()
    for _ = 1, 200 do
      assert(save(path("loop"), t))
      assert(load(path("loop")))
    end
    collectgarbage()
    assert.equal(before, live())
  end)

  it("refuses wrong arguments", function()
    local function raises(code, f, ...)
      local ok, e = pcall(f, ...)
      assert.is_false(ok)
      assert.equal(code, e.code)
    end
    raises("EARG", save, path("x"))
    raises("EARG", save, path("x"), {1})
    raises("EARG", save, path("x"), {a = "b"})
    raises("EARG", save, path("x"), {a = ampl.ones(1)}, {b = 1})
    raises("EARG", save, path("x"), {__metadata__ = ampl.ones(1)})
    raises("EVALUE", save, path("x"), {["\xff"] = ampl.ones(1)})
    raises("EVALUE", save, path("x"), {["a\0b"] = ampl.ones(1)})
    raises("EVALUE", save, "x\0y", {a = ampl.ones(1)})
    raises("EARG", load, 7)
    local freed = ampl.ones(1)
    freed:free()
    raises("EFREED", save, path("x"), {a = freed})
  end)
end)

describe("data.idx", function()
  it("reads MNIST", function()
    local images = folders.data("mnist/t10k-images-idx3-ubyte.gz")
    local labels = folders.data("mnist/t10k-labels-idx1-ubyte.gz")
    if not (images and labels) then pending(reason("data")) end
    local x = assert(ampl.data.idx(images))
    assert.same({10000, 28, 28}, x.shape)
    assert.equal("u8", x.dtype)
    local y = assert(ampl.data.idx(labels, {base = 0}))
    assert.equal("i64", y.dtype)
    assert.equal(1, y:min():item())
    assert.equal(10, y:max():item())
    assert.equal(8, y[1]:item())        -- a 7
  end)

  it("refuses cut and damaged files", function()
    local good = "\0\0\x08\x02" .. string.pack(">I4I4", 2, 3) .. "abcdef"
    assert.same({{97, 98, 99}, {100, 101, 102}}, ampl.data.idx(put("i", good)):totable())
    for i = 0, #good - 1 do refused("EFORMAT", path("i"), ampl.data.idx, put("i", good:sub(1, i))) end
    refused("EFORMAT", "too long", ampl.data.idx, put("i", good .. "x"))
    refused("EFORMAT", "no IDX", ampl.data.idx, put("i", "PK\3\4" .. good))
    refused("EFORMAT", "none of IDX", ampl.data.idx, put("i", "\0\0\x0f\x01" .. string.pack(">I4", 0)))
    refused("EFORMAT", "elements", ampl.data.idx, put("i", "\0\0\x0e\x03" .. ("\xff"):rep(12)))
    refused("EIO", "No such file", ampl.data.idx, path("nowhere"))
  end)

  it("reads every type", function()
    local function read(code, format, ...)
      local list = {...}
      return ampl.data.idx(put("i", "\0\0" .. string.char(code) .. "\1" .. string.pack(">I4", #list) ..
                                    string.pack(">" .. format:rep(#list), ...)))
    end
    assert.same({-1, 5}, read(0x09, "b", -1, 5):totable())
    assert.same({-300, 5}, read(0x0b, "i2", -300, 5):totable())
    assert.same({-70000, 5}, read(0x0c, "i4", -70000, 5):totable())
    assert.same({1.5, -0.25}, read(0x0d, "f", 1.5, -0.25):totable())
    assert.same({1e300, -0.1}, read(0x0e, "d", 1e300, -0.1):totable())
  end)
end)

describe("data.npy", function()
  local function array(dictionary, format, ...)
    local elements = string.pack(format:rep(select("#", ...)), ...)
    return put("a.npy", "\x93NUMPY\1\0" .. string.pack("<s2", dictionary) .. elements)
  end

  it("reads row-major, column-major and big-endian arrays", function()
    local p = array("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", "<d", 1, 2, 3, 4, 5, 6)
    assert.same({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}, ampl.data.npy(p):totable())
    p = array("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", ">i2", 1, 4, 2, 5, 3, -6)
    local t = ampl.data.npy(p)
    assert.same({{1, 2, 3}, {4, 5, -6}}, t:totable())
    assert.equal("i32", t.dtype)
  end)

  it("refuses objects, and whatever is no array", function()
    local objects = array("{'descr': '|O', 'fortran_order': False, 'shape': (), }", "<d")
    refused("EUNSUPPORTED", '"|O"', ampl.data.npy, objects)
    local cut = array("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", "<d", 1)
    refused("EFORMAT", "cut off", ampl.data.npy, cut)
    refused("EFORMAT", "no npy file", ampl.data.npy, put("a.npy", "PK\3\4 and more of it"))
    refused("EIO", "No such file", ampl.data.npy, path("nowhere"))
  end)
end)

describe("data.csv", function()
  local csv = ampl.data.csv

  it("reads the same table in many spellings", function()
    local spellings = {
      "1,2\n3,4.5\n", "1,2\r\n3,4.5\r\n", "\xef\xbb\xbf1,2\n3,4.5\n", "1,2\n3,4.5", " 1 ,\t2\n\n3, 4.5 \n\n",
      "1;2\n3;4.5\n", "1\t2\n3\t4.5\n", "1 2\n 3   4.5\n", '"1","2"\n3,"4.5"\n',
    }
    for i, text in ipairs(spellings) do
      local t = assert(csv(put("t", text)))
      assert.same({{1.0, 2.0}, {3.0, 4.5}}, t:totable(), "spelling " .. i)
    end
  end)

  it("finds names, and takes one column as labels", function()
    local p = put("t", "length,width,kind\n1,2,0\n3,4,2\n")
    local t, names = csv(p)
    assert.same({"length", "width", "kind"}, names)
    assert.same({2, 3}, t.shape)
    local x, y, rest = csv(p, {label = "kind", base = 0})
    assert.same({{1.0, 2.0}, {3.0, 4.0}}, x:totable())
    assert.same({1, 3}, y:totable())
    assert.equal("i64", y.dtype)
    assert.same({"length", "width"}, rest)
    x, y = csv(p, {label = -3})
    assert.same({1.0, 3.0}, y:totable())
    assert.same({2, 2}, x.shape)
    assert.equal("f64", csv(p, {dtype = "f64"}).dtype)
    assert.same({2, 3}, csv(p, {header = false, skip = 1}).shape)
  end)

  it("says line and column of what it cannot read", function()
    refused("EFORMAT", "line 2, column 2", csv, put("t", "1,2\n3\n"))
    refused("EFORMAT", "line 3, column 3", csv, put("t", "1,2\n3,4\n5,6,7\n"))
    refused("EFORMAT", 'line 2, column 1: "abc"', csv, put("t", "1,2\nabc,4\n"))
    refused("EFORMAT", "line 3, column 2: an empty field", csv, put("t", "a,b\n1,2\n3,\n"))
    refused("EFORMAT", "empty file", csv, put("t", ""))
    refused("EFORMAT", "no numbers below", csv, put("t", "a,b\n"))
    refused("EFORMAT", "skip = 5", csv, put("t", "1,2\n"), {skip = 5})
    refused("EIO", "No such file", csv, path("nowhere"))
  end)

  it("survives any cut and any change", function()
    local good = 'a,"b c",d\r\n1,2,3e5\n-.5,nan,7\n'
    local random = 1
    for i = 0, #good do
      local t, message, code = csv(put("t", good:sub(1, i)))
      assert(t or code == "EFORMAT", message)
    end
    for _ = 1, 500 do
      random = random * 6364136223846793005 + 1442695040888963407
      local at, byte = (random >> 33) % #good + 1, (random >> 20) & 255
      local t, message, code = csv(put("t", good:sub(1, at - 1) .. string.char(byte) .. good:sub(at + 1)))
      assert(t or code == "EFORMAT", message)
    end
  end)

  it("reads the data sets", function()
    local iris = folders.data("tabular/iris.csv")
    if not iris then pending(reason("data")) end
    local x, y = csv(iris, {skip = 1, label = -1, base = 0})
    assert.same({150, 4}, x.shape)
    assert.equal(3, y:max():item())
    assert.same({442, 10}, csv(folders.data("tabular/diabetes_data_raw.csv.gz")).shape)
    assert.same({1797, 65}, csv(folders.data("tabular/digits.csv.gz")).shape)
  end)

  it("refuses wrong arguments", function()
    local p = put("t", "1,2\n")
    for code, options in pairs {EARG = {label = "x"}, EINDEX = {label = 3}, EDTYPE = {dtype = "i64"}} do
      local ok, e = pcall(csv, p, options)
      assert.is_false(ok)
      assert.equal(code, e.code)
    end
    assert.error(function() csv(p, {seperator = ","}) end)
  end)
end)

describe("numbers in files", function()
  it("do not depend on the locale", function()
    local before = os.setlocale()
    local comma
    for _, name in ipairs {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"} do
      comma = comma or os.setlocale(name)
    end
    if not comma then pending(reason("locale")) end
    local t = ampl.data.csv(put("t", "1.5,2.25\n"))
    assert(ampl.safetensors.save(path("l"), {x = ampl.tensor({1.5})}, {k = "0.5"}))
    local got, metadata = ampl.safetensors.load(path("l"))
    local after = os.setlocale()
    os.setlocale(before)
    assert.equal(comma, after)
    assert.same({{1.5, 2.25}}, t:totable())
    assert.equal(1.5, got.x:totable()[1])
    assert.equal("0.5", metadata.k)
  end)
end)
