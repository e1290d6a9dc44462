-- Random files and random data sets: every reader on damaged files, loaders and writers with wrong arguments.
--   ampl spec/fuzz/files.lua [--seconds N] [--calls N] [--seed N]

package.path = (arg[0]:match("^(.*)/spec/fuzz/") or ".") .. "/?.lua;" .. package.path
local harness = require "spec.fuzz.harness"
local source = require "spec.fuzz.source"
local bytes = require "spec.fuzz.bytes"

local MOST_RESIDENT = 1 << 30           -- bytes; the memory limit is a tenth of it

-- ------------------------------------------------------------------------------------------------ expectations -------

local CODES = {EIO = true, EFORMAT = true, EUNSUPPORTED = true, ENOMEM = true}

-- The greatest memory that the process has had since the last question; nil: not known here.
local function peak()
  local f = io.open("/proc/self/status")
  if not f then return nil end
  local kilobytes = tonumber(f:read("a"):match("VmHWM:%s*(%d+)"))
  f:close()
  f = io.open("/proc/self/clear_refs", "w")
  if f then
    f:write("5")
    f:close()
  end
  return f and kilobytes and kilobytes * 1024
end

-- Reads every value, so that the sanitizers see those that were never written.
local function touch(t)
  if type(t) == "table" then
    for _, v in pairs(t) do touch(v) end
  elseif type(t) == "userdata" and t.numel and t:is_contiguous() then
    assert(#t:tobytes() >= t:numel())
  end
end

-- A reader gives what it read, or nil, a text that can be shown, and a code.
local function expected(first, message, code)
  local used = peak()
  if used and used > MOST_RESIDENT then return ("took %d MB"):format(used >> 20) end
  if first ~= nil then
    touch(first)
    touch(message)
    return nil
  end
  if type(message) ~= "string" or not CODES[code] then return "nil without a message and a code of files" end
  if message:find("%c") or not utf8.len(message) then return ("a message that is no plain text: %q"):format(message) end
  return nil
end

-- ------------------------------------------------------------------------------------------------ readers ------------

local BOOLEAN = {"true", "false"}
local CSV_OPTIONS = {
  {"label", {"1", "-1", "2", "3", "-2", "0", '"label"', '"x"', '"\\27[0m"'}}, {"base", {"0", "1", "-5", "1 << 62"}},
  {"separator", {'","', '";"', '" "', '"\\t"', '"|"', '"."', '"#"', '""'}}, {"header", BOOLEAN},
  {"skip", {"0", "1", "3", "-1", "1 << 62"}}, {"dtype", {'"f32"', '"f64"', '"i64"'}},
  {"comment", {'"#"', '"%"', '","', "false"}},
}
local TEXT_OPTIONS = {
  {"seq_len", {"1", "2", "5", "0", "1 << 62"}}, {"stride", {"1", "2", "9", "0"}},
  {"tokenizer", {'"char"', '"char"', '"byte"', '"word"', "{vocab = 3, encode = function() return {1, 2, 3} end}",
                 "{vocab = 3, encode = function() return 'abc' end}", "{vocab = 1, encode = function() end}"}},
}

local readers = {
  safetensors = function() return "ampl.safetensors.load(p)" end,
  npy = function() return "ampl.data.npy(p)" end,
  idx = function(r) return ("ampl.data.idx(p, %s)"):format(bytes.options(r, {{"base", {"0", "1", "255"}}})) end,
  csv = function(r) return ("ampl.data.csv(p, %s)"):format(bytes.options(r, CSV_OPTIONS)) end,
  text = function(r) return ("ampl.data.text(p, %s)"):format(bytes.options(r, TEXT_OPTIONS)) end,
}

local function reading(r)
  local format = r:pick(bytes.names)
  local call = readers[r:chance(15) and r:pick(bytes.names) or format](r)
  return ("local p = os.tmpname() local f = io.open(p, 'wb') f:write(%s) f:close() " ..
          "local t = table.pack(pcall(function() return %s end)) os.remove(p) " ..
          "if t[1] then return table.unpack(t, 2, t.n) end error(t[2], 0)"):format(bytes.file(r, format), call),
          expected
end

-- ------------------------------------------------------------------------------------------------ writers ------------

local PATHS = {'"/dev/full"', '"/dev/null"', '"/"', '"/tmp"', '""', '"/nowhere/x"', '"/dev/zero/x"', '"a\\0b"',
               "p .. '/x'",
               "('x'):rep(300)", "'/tmp/' .. ('x'):rep(250)", '"\\27[31m\\255/x"'}
local TEXTS = {'"a"', '"b"', '""', '"\\255"', '"\\0"', '"__metadata__"', '"\\27[31m"', '"\\u{e9}"', "('n'):rep(5000)",
               "1"}

local function writing(r)
  local tensors, metadata = {}, {}
  for i = 1, r:below(4) do
    tensors[i] = ("[%s] = %s"):format(r:pick(TEXTS), r:chance(12) and source.wrong(r) or source.tensor(r))
  end
  for i = 1, r:below(3) do metadata[i] = ("[%s] = %s"):format(r:pick(TEXTS), r:pick(TEXTS)) end
  local target, given = r:chance(3) and r:pick(PATHS) or "p", r:chance(20) and source.wrong(r) or "s"
  return ("local p = os.tmpname() local t = table.pack(pcall(function() local s = {%s} " ..
          "local ok, message, code = ampl.safetensors.save(%s, %s, {%s}) " ..
          "if not ok then return nil, message, code end " ..
          "if %s then return ok end local back, message, code = ampl.safetensors.load(p) " ..
          "if not back then return nil, message, code end " ..
          "for k, v in pairs(s) do local w = v:to('f64') " ..
          "assert(back[k]:to('f64'):eq(w):logical_or(w:isnan()):all():item()) " ..
          "end return true end)) os.remove(p) if t[1] then return table.unpack(t, 2, t.n) end error(t[2], 0)"):format(
    table.concat(tensors, ", "), target, given, table.concat(metadata, ", "),
    tostring(target ~= "p" or given ~= "s")), expected
end

-- ------------------------------------------------------------------------------------------------ data sets ----------

local GETS = {
  "return ampl.ones(2), i", "return i", "return ampl.ones(i % 3), i", "return ampl.ones(2), i < 3 and i or nil",
  "return",
  "return nil, i", "return {i}, 's'", "error('expected')", "return ampl.ones(2):to(i > 2 and 'f16' or 'f32')",
  "return 0/0",
  "local t = ampl.ones(2) if i == 2 then t:free() end return t", "return i > 1 and i or 'x'", "return i > 1, 1.5",
}
local BATCHES = {"return i, i", "return", "return nil, i", "error('expected')", "return 's'",
                 "i:free() return ampl.ones(1)"}
local LENGTHS = {"return 5", "return 5", "return 0", "return -1", "return 2.5", "return 'x'", "return nil",
                 "return 2000",
                 "error('expected')"}

local LOADER_OPTIONS = {
  {"batch_size", {"1", "2", "3", "100", "0", "-1", "1.5", "math.maxinteger"}}, {"shuffle", BOOLEAN},
  {"drop_last", BOOLEAN}, {"workers", {"0", "1", "-1"}}, {"seed", {"1", "-7", "math.maxinteger", "math.mininteger"}},
  {"sampler", {"{3, 1, 2}", "{}", "{0}", "{1.5}", "{6}", "{1, 'x'}", "ampl.tensor({2, 1})", "ampl.ones(2, 2)",
               "function(e) return {e} end", "function() end", "function() error('expected') end", "'x'"}},
  {"collate", {"function(s) return #s end", "function() end", "function(s) return s[1][1], s[1][2] end",
               "function() error('expected') end"}},
}

local function dataset(r)
  local kind = r:below(10)
  if kind == 0 then return source.wrong(r) end
  if kind < 4 then
    local list = {}
    for i = 1, r:below(4) do list[i] = r:chance(8) and source.wrong(r) or source.tensor(r) end
    return ("ampl.data.TensorDataset(%s)"):format(table.concat(list, ", "))
  end
  local batch = r:chance(8)
  return ("setmetatable({%s = function(_, i) %s end}, {__len = function() %s end})"):format(
    batch and "get_batch" or "get", r:pick(batch and BATCHES or GETS), r:pick(LENGTHS))
end

local USES = {
  "n = 0 for x, y in l do n = n + 1 if n > 4 then break end end", "s = l:state_dict()",
  "if s then l:load_state_dict(s) end", "local _ = #l", "local _ = tostring(l)",
  "l:load_state_dict(WRONG)", "l:load_state_dict({epoch = WRONG, position = WRONG, seed = WRONG, order = WRONG})",
  "n = 0 for x in l do n = n + 1 if n > 4 then break end for z in l do if n > 2 then break end end end",
  "n = 0 for x in l() do n = n + 1 if n > 4 then break end end",
  "l(WRONG, WRONG)", "local _ = tostring(d)",
}
local OURS = {"d:get(WRONG)", "d:get_batch(WRONG)"}       -- what is asked of data sets that are ampl's own

local function loading(r)
  local set = dataset(r)
  local out = {"local n, s = 0 local d = " .. set}
  out[2] = ("local l = ampl.data.DataLoader(d, %s)"):format(r:chance(20) and source.wrong(r) or
                                                          bytes.options(r, LOADER_OPTIONS))
  for i = 1, 1 + r:below(4) do
    out[i + 2] = r:pick(set:find("^ampl.data") and r:chance(2) and OURS or USES):gsub("WRONG",
      function() return source.wrong(r) end)
  end
  return table.concat(out, " ")
end

local NAMES = {"data.npy", "data.idx", "data.csv", "data.text", "data.TensorDataset", "data.DataLoader",
               "safetensors.save",
               "safetensors.load"}

local function calling(r)
  local list = {}
  for i = 1, r:below(5) do list[i] = source.wrong(r) end
  local name = r:pick(NAMES)
  if name == "safetensors.save" and list[1] and list[1]:find('"', 1, true) then list[1] = '"/nowhere/x"' end
  return ("return ampl.%s(%s)"):format(name, table.concat(list, ", "))
end

-- ------------------------------------------------------------------------------------------------ all ----------------

local function part(r)
  local k = r:below(20)
  if k < 13 then return reading(r) end
  if k < 15 then return writing(r) end
  return (k < 18 and loading or calling)(r)
end

-- A data set that has no get, or none that is a function, is the line's own mistake.
harness.main(part, "files", "attempt to call a nil value %(method '")
