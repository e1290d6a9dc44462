-- What files hold is read exactly or refused with its place, wrong arguments are errors that name function and
-- argument, and nothing of a file reaches a terminal unescaped.

local ampl = require "ampl"
local raises = require "spec.support.raises"
local shell = require "spec.support.shell"
local csv, idx, npy, text = ampl.data.csv, ampl.data.idx, ampl.data.npy, ampl.data.text

local paths = {}

local function put(bytes)
  local path = os.tmpname()
  local f = assert(io.open(path, "wb"))
  f:write(bytes)
  f:close()
  paths[#paths + 1] = path
  return path
end

teardown(function()
  for _, path in ipairs(paths) do os.remove(path) end
end)

local function has(words, message)
  for _, w in ipairs(words) do
    assert(message:find(w, 1, true), ("%q should say %q"):format(message, w))
  end
end

-- nil, a message with these words, and the code.
local function refused(code, words, ...)
  local value, message, got = ...
  assert.is_nil(value)
  assert.equal(code, got)
  has(words, message)
end

describe("labels of a CSV file", function()
  local function labels(column, options)
    options = options or {}
    options.label, options.base = options.label or 1, options.base or 0
    local x, y, z = csv(put("7," .. column:gsub("\n", "\n7,") .. "\n"), {label = 2, base = options.base})
    if not x then return x, y, z end
    assert.equal("i64", y.dtype)
    return y:totable()
  end

  it("are read exactly", function()
    assert.same({16777218, 16777220}, labels("16777217\n16777219"))
    assert.same({9007199254740994, -9007199254740994}, labels("9007199254740993\n-9007199254740995"))
    assert.same({math.maxinteger, math.mininteger + 1}, labels("9223372036854775806\n-9223372036854775808"))
    assert.same({2, 4, 101, 124, 1}, labels("1.0\n+3\n1e2\n1.23E2\n-0"))
    assert.same({1, 3}, labels("5\n7", {base = 5}))
    assert.same({1000000000000000001}, labels("1e18"))
  end)

  it("are whole numbers, or an error with line and column", function()
    for _, bad in ipairs {"1.5", "nan", "inf", "-inf", "1e-1", "0.99999999999999999999", "9223372036854775808", "x", "",
                          "1e400", "1e19", "0.1e0"} do
      refused("EFORMAT", {"line 2, column 2", "label", '"' .. bad .. '"'}, labels("1\n" .. bad))
    end
    refused("EFORMAT", {"line 1, column 2", "too big"}, labels("9223372036854775807"))
    refused("EFORMAT", {"line 1, column 2", "too big"}, labels("9223372036854775807", {base = -5}))
  end)

  it("stay numbers of the table's dtype without base", function()
    local x, y = csv(put("1.5,2\n2.5,4\n"), {label = 1, dtype = "f64"})
    assert.same({{2.0}, {4.0}}, x:totable())
    assert.same({1.5, 2.5}, y:totable())
    assert.equal("f64", y.dtype)
  end)

  it("may be the only column", function()
    local x, y = csv(put("1\n2\n"), {label = -1, base = 1})
    assert.same({2, 0}, x.shape)
    assert.same({1, 2}, y:totable())
  end)
end)

describe("labels of an IDX file", function()
  local function file(code, format, ...)
    local list = {...}
    return put("\0\0" .. string.char(code) .. "\1" .. string.pack(">I4", #list) ..
               string.pack(">" .. format:rep(#list), ...))
  end

  it("are read exactly in every type", function()
    assert.same({1, 256}, idx(file(0x08, "B", 0, 255), {base = 0}):totable())
    assert.same({-127, 128}, idx(file(0x09, "b", -128, 127), {base = 0}):totable())
    assert.same({-32767, 32768}, idx(file(0x0B, "i2", -32768, 32767), {base = 0}):totable())
    assert.same({16777218, 2147483648}, idx(file(0x0C, "i4", 16777217, 2147483647), {base = 0}):totable())
    assert.same({3, 16777217}, idx(file(0x0D, "f", 2, 16777216), {base = 0}):totable())
    assert.same({3, 9007199254740992}, idx(file(0x0E, "d", 2, 9007199254740991), {base = 0}):totable())
  end)

  it("are whole numbers, or an error with the position", function()
    for _, bad in ipairs {1.5, 0/0, 1/0, -1/0, 1e300} do
      refused("EFORMAT", {"position 2", "no whole number"}, idx(file(0x0E, "d", 1, bad), {base = 0}))
    end
    refused("EFORMAT", {"label 0.5 at position 1"}, idx(file(0x0D, "f", 0.5), {base = 0}))
  end)
end)

describe("tables of text", function()
  it("are the same in every encoding and with comments", function()
    for i, spelling in ipairs {
      "1,2\r3,4.5\r", "1,2\r3,4.5", "\r\r1,2\r\r\n3,4.5\n\r", "\xef\xbb\xbf1,2\r\n3,4.5", "# x y\n1,2\n3,4.5\n",
      "1,2\n#\n3,4.5\n# the end", "  # x\r1,2\r\n\t# y\n3,4.5 # z, 1", "1,2#a\n3,4.5", "1 2 # x, y\n3 4.5\n",
      "1,2  \n3,4.5\t\n", '"1",2\n3, "4.5" \n', "x,y # z\n1,2\n3,4.5", "x,y\r1,2\r3,4.5\r", "1;2\r\n3;4.5\r\n\r\n",
    } do
      assert.same({{1.0, 2.0}, {3.0, 4.5}}, assert(csv(put(spelling))):totable(), "spelling " .. i)
    end
    assert.same({{1.0, 2.0}}, csv(put("% c\n1,2\n"), {comment = "%"}):totable())
    refused("EFORMAT", {"line 1, column 1", '"# c"'}, csv(put("# c,1\n1,2\n"), {comment = false}))
  end)

  it("count lines alike in all of them", function()
    for _, eol in ipairs {"\n", "\r\n", "\r"} do
      local p = put(("1,2\n\n# c\n3,4\nx,5\n"):gsub("\n", eol))
      refused("EFORMAT", {'line 5, column 1: "x"'}, csv(p))
      p = put("1,2\n\n\n3,4,5\n" .. ("\n"):rep(70000):gsub("\n", eol))
      refused("EFORMAT", {"line 4, column 3"}, csv(p))
      p = put((("\n"):rep(70000) .. "1 \n2 3"):gsub("\n", eol))
      refused("EFORMAT", {"line 70002, column 2"}, csv(p))
    end
  end)

  it("have a header only where the first line holds no number", function()
    for _, first in ipairs {"NA,1", "1,NA", "x,2", ",2", "nan,x", "NA,NA", ",", "?,-", '"1",x', "null,n/a"} do
      refused("EFORMAT", {"line 1, column"}, csv(put(first .. "\n2,3\n4,5\n")))
    end
    for _, first in ipairs {"x,y", "x,NA", "x,", '"a b","c"', "1a,b", "item #,count", "x2,y_3"} do
      local t, names = csv(put(first .. "\n2,3\n4,5\n"))
      assert.same({2, 2}, t.shape, first)
      assert.equal(2, #names)
    end
    assert.same({2, 2}, csv(put("2019,2020\n2,3\n4,5\n"), {header = true}).shape)
    assert.same({"2019", "2020"}, select(2, csv(put("2019,2020\n2,3\n4,5\n"), {header = true})))
    assert.same({3, 2}, csv(put("2019,2020\n2,3\n4,5\n")).shape)
    refused("EFORMAT", {"line 1, column 1"}, csv(put("x,y\n1,2\n"), {header = false}))
  end)

  it("refuse a column of labels that is not there", function()
    local p = put("x,y\n1,2\n")
    raises("EARG", {"data.csv", '"z"', '"x", "y"'}, csv, p, {label = "z"})
    raises("EARG", {"data.csv", "no header", '"z"'}, csv, put("1,2\n"), {label = "z"})
    raises("EINDEX", {"data.csv", "label = 3", "2 columns"}, csv, p, {label = 3})
    raises("EINDEX", {"data.csv", "label = -3", "2 columns"}, csv, p, {label = -3})
    raises("EINDEX", {"data.csv", "label = 0"}, csv, p, {label = 0})
  end)
end)

describe("npy files", function()
  local function array(dictionary, elements, version)
    return put("\x93NUMPY" .. string.char(version or 1, 0) .. string.pack(version and "<s4" or "<s2", dictionary) ..
               elements)
  end

  it("may be of Python 2, of every version, 0-d and empty", function()
    local two = string.pack("<ff", 1, 2)
    assert.same({1.0, 2.0}, npy(array("{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }", two)):totable())
    assert.same({{1.0, 2.0}}, npy(array("{u'descr': u'<f4', u'fortran_order': False, 'shape': (1L, 2L)}",
                                        two)):totable())
    for version = 2, 3 do
      assert.same({1.0, 2.0}, npy(array("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", two,
                                        version)):totable())
    end
    assert.equal(7, npy(array("{'descr': '>i8', 'fortran_order': False, 'shape': ()}", string.pack(">i8", 7))):item())
    local empty = npy(array("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 0, 2)}", ""))
    assert.same({3, 0, 2}, empty.shape)
    assert.same({{{1, 5}, {3, 7}}, {{2, 6}, {4, 8}}},
                npy(array("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 2)}", "\1\2\3\4\5\6\7\8")):totable())
  end)

  it("are refused with an element size that only looks like one", function()
    for _, descr in ipairs {"<f4294967300", "<f04", "<f+4", "<f 4", "<f", "f", "", "<i0", "<f-4", "<f4x"} do
      refused("EUNSUPPORTED", {'"' .. descr .. '"'},
              npy(array(("{'descr': '%s', 'fortran_order': False, 'shape': (1,), }"):format(descr), "\0\0\0\0")))
    end
    refused("EFORMAT", {"version 1.7"}, npy(put("\x93NUMPY\1\7" .. string.pack("<s2", "{}"))))
  end)
end)

describe("safetensors headers", function()
  local load = ampl.safetensors.load
  local function file(header, data) return put(string.pack("<s8", header) .. (data or "")) end
  local entry = '{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'

  it("may hold every way of JSON to write a text", function()
    local t, m = assert(load(file([[{ "a\u00e9\ud83d\ude00\n\"\\\/" : {"shape" : [ 1 ] ,
      "x": [{"y": [null, true, -1.5e-3, "s"]}], "data_offsets":[0,1],"dtype":"U8"},
      "__metadata__" : {"k" : "\u20ac", "" : ""} }  ]], "\7")))
    assert.equal(7, t["aé😀\n\"\\/"]:item())
    assert.same({k = "€", [""] = ""}, m)
  end)

  it("are refused where they are no JSON, at the right byte", function()
    for _, bad in ipairs {
      {'{"a":' .. entry .. ",}", "byte 61", "string"}, {'{"a":' .. entry, "byte 60", "it ends"}, {'{"a" 1}', "byte 13",
        "colon"},
      {'{"a":' .. entry .. '"b"', "byte 60", "comma"}, {'{"\\x"}', "byte 10", "escape"}, {'{"\\ud800"}', "byte 10",
        "surrogates"},
      {'{"\\udc00"}', "byte 10", "escape"}, {'{"\\u0000"}', "byte 10", "zero"}, {'{"\1"}', "byte 10", "control"},
      {'{"\xc0\x80"}', "byte 10", "UTF-8"}, {'{"a":{"x":01}}', "byte 18", "value"}, {'{"a":{"x":1.}}', "byte 18",
        "value"},
      {'{"a":{"x":' .. ("["):rep(80) .. "}", "byte 8", "64"}, {'{"a":{"x":nul}}', "byte 18", "value"}, {"{}{}",
        "byte 10", "end"},
    } do
      refused("EFORMAT", {"no valid JSON", bad[2], bad[3]}, load(file(bad[1], "\7")))
    end
  end)

  it("are refused with names that stand there twice", function()
    refused("EFORMAT", {"duplicate", '"a"'}, load(file('{"a":' .. entry .. ',"\\u0061":' .. entry .. "}", "\7")))
    refused("EFORMAT", {"duplicate", "shape", '"a"'}, load(file('{"a":{"shape":[1],"dtype":"U8","shape":[1]}}')))
    refused("EFORMAT", {"duplicate", "__metadata__"}, load(file('{"__metadata__":{},"__metadata__":{}}')))
    refused("EFORMAT", {"duplicate", "__metadata__", '"k"'}, load(file('{"__metadata__":{"k":"1","k":"2"}}')))
  end)

  it("are refused with sizes beyond integers", function()
    for size, says in pairs {["9223372036854775808"] = "too big", ["18446744073709551617"] = "too big",
                             ["9223372036854775807"] = "elements", ["-1"] = "no natural", ["1e2"] = "no natural"} do
      refused("EFORMAT", {says, '"a"'},
              load(file(('{"a":{"dtype":"U8","shape":[%s],"data_offsets":[0,1]}}'):format(size), "\7")))
    end
    refused("EFORMAT", {"9223372036854775807"}, load(put(string.pack("<i8", math.maxinteger) .. "{}")))
    refused("EFORMAT", {"18446744073709551615"}, load(put(string.pack("<i8", -1) .. "{}")))
    local empty = assert(load(file('{"a":{"dtype":"F32","shape":[0,9223372036854775],"data_offsets":[0,0]}}')))
    assert.same({0, 9223372036854775}, empty.a.shape)
  end)

  it("are shown escaped", function()
    refused("EFORMAT", {[["\u{9b}31m\x1b\n\u{202e}\\"]]},
            load(file([[{"\u009b31m\u001b\n\u202e\\":[]}]])))
    local p = file('{"w\\u001b[31m":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},' ..
                   '"__metadata__":{"k\\n":"\\u009bx"}}',
                   string.pack("<i8i8", 16777217, 9007199254740993))
    local pipe = assert(io.popen(("%s inspect %s 2>&1"):format(shell.program(), p)))
    local out = pipe:read("a")
    pipe:close()
    has({"w\\x1b[31m", "16777217 to 9007199254740993", "metadata k\\n: \\u{9b}x", "16 bytes"}, out)
    assert.is_nil(out:find("[\27\x9b]"))
  end)
end)

describe("wrong arguments", function()
  it("name function and argument", function()
    local freed = ampl.ones(1)
    freed:free()
    for name, f in pairs {["data.csv"] = csv, ["data.idx"] = idx, ["data.npy"] = npy, ["data.text"] = text,
                          ["safetensors.load"] = ampl.safetensors.load, ["safetensors.save"] = ampl.safetensors.save} do
      for _, bad in ipairs {5, true, print, {}, ampl.ones(1), freed, io.stdout} do
        raises("EARG", {name, "path"}, f, bad)
      end
      raises("EARG", {name, "path"}, f)
      raises("EVALUE", {name, "zero byte"}, function() return f("a\0b") end)
    end
    local p = put("1,2\n3,4\n")
    for _, case in ipairs {
      {"EARG", "label", {label = 1.5}}, {"EARG", "label", {label = {}}}, {"EARG", "label", {label = true}},
      {"EARG", "base", {base = 0.5}}, {"EARG", "base", {base = "0"}}, {"EARG", "separator", {separator = 1}},
      {"EVALUE", "separator", {separator = ""}}, {"EVALUE", "separator", {separator = ",,"}}, {"EVALUE", "separator",
        {separator = "."}},
      {"EVALUE", "separator", {separator = "\0"}}, {"EVALUE", "separator", {separator = "\n"}}, {"EVALUE", "separator",
        {separator = '"'}},
      {"EARG", "header", {header = 1}}, {"EVALUE", "skip", {skip = -1}}, {"EARG", "skip", {skip = 1.5}},
      {"EDTYPE", "dtype", {dtype = "i64"}}, {"EDTYPE", "dtype", {dtype = "float"}}, {"EARG", "dtype", {dtype = 4}},
      {"EVALUE", "comment", {comment = ","}}, {"EVALUE", "comment", {comment = "//"}}, {"EARG", "seperator",
        {seperator = ","}},
    } do
      raises(case[1], {"data.csv", case[2]}, csv, p, case[3])
    end
    raises("EARG", {"data.idx", "base"}, idx, p, {base = 0.5})
    raises("EVALUE", {"data.idx", "base"}, idx, p, {base = math.mininteger})
    raises("EARG", {"data.npy"}, npy, p, {dtype = "f32"})
    raises("EARG", {"data.text", "tokenizer"}, text, p, {tokenizer = {}})
    raises("EARG", {"data.text", "tokenizer"}, text, p, {tokenizer = 5})
    raises("EVALUE", {"data.text", "stride"}, text, p, {stride = 0})
    raises("EVALUE", {"data.text", "encode"}, text, p, {tokenizer = {vocab = 1, encode = function() return 5 end}})
    refused("EFORMAT", {"byte 1", "no valid UTF-8", "byte"}, text(put("a\xff"), {tokenizer = "char"}))
    refused("EIO", {"folder"}, text("/tmp"))
  end)

  it("of safetensors.save say what to give", function()
    local save = ampl.safetensors.save
    local p = put("")
    raises("EARG", {"safetensors.save", "Linear", "state_dict()"}, save, p, ampl.nn.Linear(1, 1))
    raises("EARG", {"safetensors.save", "state_dict()"}, save, p, ampl.optim.SGD({ampl.ones(1)}, {lr = 1}))
    raises("EARG", {"safetensors.save", "state_dict()"}, save, p, ampl.amp.GradScaler())
    raises("EARG", {"safetensors.save", "{name = tensor}", "tensor"}, save, p, ampl.ones(1))
    raises("EARG", {"safetensors.save", "names of tensors", "number"}, save, p, {ampl.ones(1)})
    raises("EARG", {"safetensors.save", '"a"', "table"}, save, p, {a = {}})
    raises("EARG", {"safetensors.save", '"\\x1b"', "string"}, save, p, {["\27"] = "x"})
    raises("EARG", {"safetensors.save", "metadata", '"k"', "number"}, save, p, {}, {k = 1})
    raises("EVALUE", {"safetensors.save", '"\\xff"', "UTF-8"}, save, p, {["\xff"] = ampl.ones(1)})
    raises("EVALUE", {"safetensors.save", "a\\x00b", "zero byte"}, save, p, {["a\0b"] = ampl.ones(1)})
  end)

  it("of texts and their tokenizers are errors", function()
    local d = assert(text(put("hello"), {seq_len = 2, stride = 1, tokenizer = "char"}))
    raises("EINDEX", {"get(9)", "3 samples"}, d.get, d, 9)
    raises("EARG", {"get"}, d.get, d, "shape")
    raises("EINDEX", {"data.text", "id 9 at position 2"}, d.decode, d, {1, 9})
    raises("EARG", {"data.text", "decode"}, d.decode, d, "x")
    raises("EVALUE", {"data.text", '"\\x1b"'}, d.tokenizer.encode, d.tokenizer, "h\27")
    raises("EVALUE", {"data.text", "UTF-8"}, d.tokenizer.encode, d.tokenizer, "\xff")
    raises("EARG", {"data.text", "encode"}, d.tokenizer.encode, d.tokenizer, 5)
    assert.equal("hello", d:decode(d.tokens))
  end)
end)
