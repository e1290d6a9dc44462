-- Small valid files of every format, damage to them, and both as Lua source.

local source = require "spec.fuzz.source"

local bytes = {}

-- ------------------------------------------------------------------------------------------------ source -------------

-- Printable source of a string.
function bytes.quoted(s)
  return '"' .. s:gsub('[%c"\\\128-\255]', function(c) return ("\\%03d"):format(c:byte()) end) .. '"'
end

-- ------------------------------------------------------------------------------------------------ gzip ---------------

local table_of_crc = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do c = c & 1 == 1 and 0xEDB88320 ~ (c >> 1) or c >> 1 end
  table_of_crc[i] = c
end

local function crc32(s)
  local c = 0xFFFFFFFF
  for i = 1, #s do c = table_of_crc[(c ~ s:byte(i)) & 255] ~ (c >> 8) end
  return c ~ 0xFFFFFFFF
end

local GZIP = "\31\139\8\0\0\0\0\0\0\3"

-- s in one block that is not compressed.
function bytes.gzip(s)
  return GZIP .. "\1" .. string.pack("<I2I2", #s, ~#s & 0xFFFF) .. s .. string.pack("<I4I4", crc32(s), #s)
end

-- Source of a compressed file whose content is `s` (at most 100 bytes) again and again, 1000 times its own size; its
-- checksum is missing.
function bytes.bomb(s, kilobytes)
  local bits, n = {}, 0
  local function put(v, count) for i = 0, count - 1 do bits[n + 1], n = v >> i & 1, n + 1 end end
  local function code(v, count) for i = count - 1, 0, -1 do bits[n + 1], n = v >> i & 1, n + 1 end end
  put(1, 1)
  put(1, 2)                                             -- the last block, with fixed codes
  for i = 1, #s do
    local c = s:byte(i)
    if c < 144 then code(48 + c, 8) else code(400 + c - 144, 9) end
  end
  local function again()                                -- 258 bytes from #s bytes back
    code(0xC5, 8)
    local d, extra = #s - 1, 0
    if d < 4 then code(d, 5) return end
    while (1 << (extra + 2)) <= d do extra = extra + 1 end
    code(2 * extra + 2 + (d >> extra & 1), 5)
    put(d & ((1 << extra) - 1), extra)
  end
  while n % 8 ~= 0 and n < 4096 do again() end
  local before = n
  for _ = 1, 8 do again() end
  local out = {}
  for i = 1, n, 8 do
    local byte = 0
    for k = 0, 7 do byte = byte | (bits[i + k] or 0) << k end
    out[#out + 1] = string.char(byte)
  end
  local all = table.concat(out)
  return ("%s .. (%s):rep(%d)"):format(bytes.quoted(GZIP .. all:sub(1, before // 8)),
                                       bytes.quoted(all:sub(before // 8 + 1)), kilobytes // 2)
end

-- ------------------------------------------------------------------------------------------------ valid files --------

local function shape(r)
  local out = {}
  for i = 1, r:below(4) do out[i] = r:pick {0, 1, 1, 2, 3, 4} end
  return out
end

local function product(list)
  local n = 1
  for _, v in ipairs(list) do n = n * v end
  return n
end

local function noise(r, n)
  local out = {}
  for i = 1, n do out[i] = string.char(r:below(256)) end
  return table.concat(out)
end

local NAMES = {"a", "b", "weight", "layer1.0.bias", "", "\\u00e9", "\xc3\xa9", "\\n", "\\ud83d\\ude00", "__metadata__"}
local DTYPES = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"U8", 1}, {"BOOL", 1}, {"I8",
  1},
                {"I16", 2}, {"U16", 2}, {"U32", 4}, {"F8_E4M3", 1}, {"U64", 8}}

local function safetensors(r)
  local parts, at = {}, 0
  if r:chance(3) then
    parts[1] = ('"__metadata__":{"format":"pt","%s":"%s"}'):format(r:pick(NAMES), r:pick(NAMES))
  end
  for _ = 1, r:below(5) do
    local t, s = r:pick(DTYPES), shape(r)
    local n = product(s) * t[2]
    parts[#parts + 1] = ('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(r:pick(NAMES), t[1],
      table.concat(s, ","), at, at + n)
    at = at + n
  end
  local header = "{" .. table.concat(parts, ",") .. "}" .. (" "):rep(r:below(9))
  return string.pack("<s8", header) .. noise(r, at)
end

local DESCR = {"<f4", "<f8", "<f2", ">f4", ">f8", "<i8", ">i8", "<i4", ">i2", "|u1", "|b1", "|i1", "<u4", "|O", "<c8",
               "<U4"}

local function npy(r)
  local d, s, long = r:pick(DESCR), shape(r), r:chance(4) and "L" or ""
  local sizes = {}
  for i, v in ipairs(s) do sizes[i] = v .. long end
  local header = ("{'descr': '%s', 'fortran_order': %s, 'shape': (%s%s), }"):format(d, r:pick {"True", "False"},
    table.concat(sizes, ", "), #s == 1 and "," or "")
  header = header .. (" "):rep(r:below(20)) .. "\n"
  local version = 1 + r:below(3)
  return "\x93NUMPY" .. string.char(version, 0) .. string.pack(version == 1 and "<s2" or "<s4", header) ..
         noise(r, product(s) * (tonumber(d:match("%d")) or 8))
end

local IDX = {{0x08, 1}, {0x09, 1}, {0x0B, 2}, {0x0C, 4}, {0x0D, 4}, {0x0E, 8}}

local function idx(r)
  local t, s = r:pick(IDX), shape(r)
  if #s == 0 then s[1] = 2 end
  local out = {"\0\0" .. string.char(t[1], #s)}
  for _, v in ipairs(s) do out[#out + 1] = string.pack(">I4", v) end
  return table.concat(out) .. noise(r, product(s) * t[2])
end

local FIELDS = {"1", "2.5", "-3e7", "nan", "inf", "16777217", "9007199254740993", "0", '"4"', " 5 ", "1e400"}
local ODD = {"NA", "", "abc", '"a ""b""', "#", "0x10", "1.5.2", "\xff", "99999999999999999999", "\27[31m"}

local function csv(r)
  local sep, eol, columns = r:pick {",", ";", "\t", " "}, r:pick {"\n", "\r\n", "\r"}, 1 + r:below(4)
  local lines = {}
  if r:chance(4) then lines[1] = "# a comment, with words" end
  if r:chance(3) then
    local names = {}
    for i = 1, columns do names[i] = r:pick {"x", "label", '"a b"', "y" .. i} end
    lines[#lines + 1] = table.concat(names, sep)
  end
  for _ = 1, r:below(6) do
    local fields = {}
    for i = 1, columns do fields[i] = r:pick(r:chance(30) and ODD or FIELDS) end
    lines[#lines + 1] = table.concat(fields, sep) .. (r:chance(20) and " # so it is" or "")
  end
  return r:pick {"", "", "\xef\xbb\xbf"} .. table.concat(lines, eol) .. r:pick {"", eol, eol .. eol}
end

local function text(r)
  local out = {}
  for i = 1, r:below(60) do out[i] = r:pick {"a", "b", " ", "\n", "\xc3\xa9", "\xf0\x9f\x98\x80", "x"} end
  return table.concat(out)
end

bytes.formats = {safetensors = safetensors, npy = npy, idx = idx, csv = csv, text = text}
bytes.names = {"safetensors", "npy", "idx", "csv", "text"}

-- ------------------------------------------------------------------------------------------------ damage -------------

local NUMBERS = {"0", "1", "-1", "7", "255", "65536", "2147483647", "2147483648", "4294967295", "4294967296",
                 "1152921504606846976", "9007199254740993", "9223372036854775807", "9223372036854775808",
                 "18446744073709551615", "99999999999999999999999", "1.5", "1e5", "1e400", "-0", "007", "null", "[]",
                 "{}"}
local BYTES = {0, 1, 9, 10, 13, 32, 34, 35, 39, 44, 48, 57, 58, 76, 91, 92, 93, 123, 125, 127, 128, 192, 237, 254, 255}

-- Each takes a stream and a string, and returns another string.
local damages = {
  function(r, s)
    local at = 1 + r:below(#s)
    return s:sub(1, at - 1) .. string.char(s:byte(at) ~ (1 << r:below(8))) .. s:sub(at + 1)
  end,
  function(r, s)
    local at = 1 + r:below(#s)
    return s:sub(1, at - 1) .. string.char(r:pick(BYTES)) .. s:sub(at + r:below(2))
  end,
  function(r, s) return s:sub(1, r:below(#s)) end,
  function(r, s) return s .. noise(r, 1 + r:below(9)) end,
  function(r, s)                                        -- a part twice
    local a = 1 + r:below(#s)
    local b = math.min(#s, a + r:below(40))
    return s:sub(1, b) .. s:sub(a)
  end,
  function(r, s)                                        -- a part less
    local a = 1 + r:below(#s)
    return s:sub(1, a - 1) .. s:sub(a + 1 + r:below(20))
  end,
  function(r, s)                                        -- another number
    local n = select(2, s:gsub("%d+", ""))
    if n == 0 then return s end
    local which, count = 1 + r:below(n), 0
    return (s:gsub("%d+", function(d)
      count = count + 1
      return count == which and r:pick(NUMBERS) or d
    end))
  end,
  function(r, s)                                        -- eight bytes that may be a length
    local at = r:pick {1, 3, 5, 9, 1 + r:below(#s)}
    local v = string.pack("<i8", r:pick {0, 1, 2, #s, #s - 8, #s + 1, 100000000, 100000001, 1 << 31, 1 << 62,
                                         math.maxinteger, math.mininteger, -1})
    return s:sub(1, at - 1) .. v:sub(1, r:pick {2, 4, 8}) .. s:sub(at + r:pick {0, 2, 4, 8})
  end,
  function(r, s)                                        -- the start of one file, the end of another
    local other = bytes.formats[r:pick(bytes.names)](r)
    return s:sub(1, r:below(#s + 1)) .. other:sub(1 + r:below(#other + 1))
  end,
}

function bytes.damaged(r, s)
  repeat
    if #s == 0 then return s end
    s = r:pick(damages)(r, s)
  until r:chance(2)
  return s
end

-- ------------------------------------------------------------------------------------------------ files --------------

local LONG = {'"1,2\\n"', '"1,"', '"\\n"', '"["', '"{\\"a\\":"', '"a,"', '"\\""', '"0,"', '"\\0"', '" "', '"\\r"',
              '"#"'}

-- Source of a file's content, mostly of this format.
function bytes.file(r, format)
  local kind = r:below(60)
  if kind == 0 then return ("(%s):rep(%d)"):format(r:pick(LONG), r:pick {1000, 100000, 800000}) end
  if kind == 1 then return bytes.bomb(r:pick {"1,2\n", "1,", "\n", "a,", "\0", "12345678\n"}, r:pick {64, 4096,
    80000}) end
  if kind == 2 and format == "safetensors" then
    return ('string.pack("<s8", "{" .. (%s):rep(%d) .. "}")'):format(
      r:pick {"'\"a\":{},'", "'\"\":[],'", "'{'", "'[0,'", "'\"\\\\u0041'"}, r:pick {1000, 100000})
  end
  local s = bytes.formats[r:chance(20) and r:pick(bytes.names) or format](r)
  if r:chance(4) and (format == "csv" or format == "idx") then s = bytes.gzip(s) end
  if not r:chance(5) then s = bytes.damaged(r, s) end
  return bytes.quoted(s)
end

-- Source of a table of options, most of them of the right kind.
function bytes.options(r, known)
  local out = {}
  for _, o in ipairs(known) do
    if r:chance(#known + 1) then
      out[#out + 1] = o[1] .. " = " .. (r:chance(6) and source.wrong(r) or r:pick(o[2]))
    end
  end
  return "{" .. table.concat(out, ", ") .. "}"
end

return bytes
