-- Random Lua source: sizes, numbers, tensors in every layout and dtype, wrong values of every kind.

local source = {}

local SMALL = {0, 1, 1, 2, 2, 3, 4, 5, 7, 8}
local EDGES = {
  0, 1, -1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 255, 256, 511, 512, 513, 1023, 1024, 1025, 4095, 4097, 16383, 16385,
  65535, 65537, 100003,
}
local HUGE = {
  "1 << 31", "(1 << 31) - 1", "1 << 32", "1 << 53", "1 << 61", "1 << 62", "math.maxinteger", "math.mininteger",
  "math.maxinteger - 1", "-(1 << 31)", "-(1 << 62)", "2^53", "2^40",
}
local FLOATS = {
  "0.5", "-1.5", "0.0", "-0.0", "1e-8", "1e30", "-1e300", "math.huge", "-math.huge", "0/0", "65504.0", "1e-45", "3.0",
  "0.9999", "2^-126", "2^127",
}
local STRINGS = {
  '""', '"x"', '"mean"', '"sum"', '"none"', '"f16"', '"float16"', '"cpu"', '"cuda:9"', '"same"', '"\\0"',
  '("a"):rep(1500)', '"%s%n"', '"\\27[31m"', '"bilinear"', '"reflect"',
}
local DTYPES = {"f32", "f32", "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool"}
local OTHERS = {
  "nil", "true", "false", "{}", "{1}", "{1, 2}", "{-1, 0}", "{nil, 1}", "{1, nil, 3}", "{x = 1}", "{1, x = 1}", "print",
  "io.stdout", "coroutine.create(print)", "function() error('expected') end", "setmetatable({}, {})",
  "(function() local t = ampl.ones(2); t:free(); return t end)()", "ampl.nn.Linear(2, 2)", "{{1, 2}, {3, 4}}",
  "{ampl.ones(2), ampl.ones(2)}", "{ampl.ones(2), nil, ampl.ones(2)}", "{dim = 1}", "{dim = {}}",
}

function source.dtype(r) return r:pick(DTYPES) end
function source.float(r) return r:pick(FLOATS) end

function source.integer(r)
  local k = r:below(10)
  if k < 5 then return tostring(r:pick(SMALL)) end
  if k < 8 then return tostring(r:pick(EDGES)) end
  return r:pick(HUGE)
end

function source.size(r)                 -- mostly one that can be allocated
  local k = r:below(40)
  if k < 30 then return tostring(r:pick(SMALL)) end
  if k < 38 then return tostring(math.abs(r:pick(EDGES))) end
  return r:pick(HUGE)
end

function source.list(r, most, of)
  local t = {}
  for i = 1, r:below(most + 1) do t[i] = of(r) end
  return "{" .. table.concat(t, ", ") .. "}"
end

function source.wrong(r)
  local k = r:below(5)
  if k == 0 then return source.integer(r) end
  if k == 1 then return source.float(r) end
  if k == 2 then return r:pick(STRINGS) end
  return r:pick(OTHERS)
end

-- Text that goes behind an expression that is a tensor, and changes how it lies in memory.
local LAYOUTS = {
  function() return ":transpose(1, -1)" end,
  function(r) return (":narrow(%d, %d, %d)"):format(r:pick {1, -1}, r:pick {1, 2, -1}, r:pick {0, 1, 2, 600}) end,
  function(r)
    return (":slice{dim = %d, start = %d, step = %d}"):format(r:pick {1, -1, 2}, r:pick {1, 2}, r:pick {1, 2, 3})
  end,
  function(r) return (":select(%d, 1)"):format(r:pick {1, -1}) end,
  function(r) return (":unsqueeze(%d)"):format(r:pick {1, -1, 2}) end,
  function(r) return (":unsqueeze(1):expand(%s, -1)"):format(source.size(r)) end,
  function(r) return (":expand(%s)"):format(source.list(r, 4, source.size)) end,
  function(r) return (":unfold(%d, %d, %d)"):format(r:pick {1, -1}, r:pick {1, 2, 3}, r:pick {1, 2}) end,
  function() return ":t()" end,
  function() return ":flatten()" end,
  function() return ":detach()" end,
  function() return ":diag()" end,
  function() return ":permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3)" end,
  function(r) return (':to("%s")'):format(source.dtype(r)) end,
  function() return "[1]" end,
}

function source.layout(r) return r:pick(LAYOUTS)(r) end

local FILLS = {
  {"f32", "ampl.randn(%s)"}, {"f32", "ampl.rand(%s)"}, {"f32", "ampl.zeros(%s)"}, {"f32", "ampl.ones(%s)"},
  {"i64", "ampl.randint(1, 4, %s)"}, {"i64", "ampl.randint(-3, 9, %s)"}, {"f32", "ampl.full(%s, 0/0)"},
  {"f32", "ampl.full(%s, -math.huge)"}, {"f32", "ampl.randn(%s):mul(1e30)"}, {"bool", "ampl.rand(%s):gt(0.5)"},
  {"i64", "ampl.full(%s, math.mininteger)"}, {"i64", "ampl.full(%s, -1)"},
}

-- Whether a text of this file makes a tensor.
function source.is_tensor(text) return text:find("^ampl%.[a-z_]+%(") ~= nil end

-- A tensor of any kind, in any layout.
function source.tensor(r)
  local fill = r:pick(FILLS)
  local shape = source.list(r, r:pick {1, 2, 3, 4, 4, 5}, source.size)
  local text = fill[2]:format(shape)
  if r:chance(3) then text = text .. (':to("%s")'):format(source.dtype(r)) end
  while r:chance(3) do text = text .. source.layout(r) end
  return text
end

-- The value `v` as source: numbers, strings, booleans, tables of them, small tensors.
function source.of(v)
  if type(v) == "table" then
    local parts, n = {}, #v
    for i = 1, n do parts[i] = source.of(v[i]) end
    local keys = {}
    for k in pairs(v) do
      if type(k) == "string" then keys[#keys + 1] = k end
    end
    table.sort(keys)
    for _, k in ipairs(keys) do parts[#parts + 1] = ("[%q] = %s"):format(k, source.of(v[k])) end
    return "{" .. table.concat(parts, ", ") .. "}"
  elseif type(v) == "userdata" then
    return ('ampl.tensor(%s, {dtype = "%s"}):view(%s)'):format(source.of(v:flatten():totable()), v.dtype,
                                                             source.of(v.shape))
  elseif type(v) == "string" then return ("%q"):format(v)
  elseif v == math.huge then return "math.huge"
  elseif v == -math.huge then return "-math.huge"
  elseif v ~= v then return "0/0"
  elseif math.type(v) == "float" then return ("%.17g"):format(v):gsub("^%-?%d+$", "%0.0")
  end
  return tostring(v)
end

return source
