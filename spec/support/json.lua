-- Reads JSON.  Objects become tables, null becomes json.null.

local json = {null = setmetatable({}, {__tostring = function() return "null" end})}

local escapes = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/"}
local words = {["true"] = true, ["false"] = false, null = json.null}
local value

local function fail(s, at, what)
  error(("JSON: %s expected at byte %d, found %q"):format(what, at, s:sub(at, at + 20)), 0)
end

local function unescape(text)
  return (text:gsub("\\(.)(%x?%x?%x?%x?)", function(c, hex)
    if c == "u" then return utf8.char(tonumber(hex, 16)) end
    return (escapes[c] or c) .. hex
  end))
end

-- The string whose opening quote is at `at`, and the place behind its closing one.
local function str(s, at)
  local from = at + 1
  local to = from
  while true do
    local stop, _, c = s:find('(["\\])', to)
    if not stop then fail(s, at, "a closing quote") end
    if c == '"' then
      local text = s:sub(from, stop - 1)
      return text:find("\\", 1, true) and unescape(text) or text, stop + 1
    end
    to = stop + 2
  end
end

local function object(s, at)
  local out = {}
  local next_at = s:match("^%s*}()", at + 1)
  if next_at then return out, next_at end
  repeat
    at = s:match("^%s*()\"", at + 1) or fail(s, at + 1, "a key")
    local key, v, c
    key, at = str(s, at)
    at = s:match("^%s*:()", at) or fail(s, at, "a colon")
    v, at = value(s, at)
    out[key] = v
    c, at = s:match("^%s*([,}])()", at)
    if not c then fail(s, #s, "a comma or }") end
    at = at - 1
  until c == "}"
  return out, at + 1
end

local function array(s, at)
  local out, n = {}, 0
  local next_at = s:match("^%s*%]()", at + 1)
  if next_at then return out, next_at end
  repeat
    local v, c
    v, at = value(s, at + 1)
    n = n + 1
    out[n] = v
    c, at = s:match("^%s*([,%]])()", at)
    if not c then fail(s, #s, "a comma or ]") end
    at = at - 1
  until c == "]"
  return out, at + 1
end

function value(s, at)
  at = s:find("%S", at) or fail(s, #s, "a value")
  local c = s:sub(at, at)
  if c == "{" then return object(s, at) end
  if c == "[" then return array(s, at) end
  if c == '"' then return str(s, at) end
  local number, stop = s:match("^(-?%d[%d.eE+-]*)()", at)
  if number then return tonumber(number) or fail(s, at, "a number"), stop end
  local word, behind = s:match("^(%a+)()", at)
  if words[word] == nil then fail(s, at, "a value") end
  return words[word], behind
end

---@param s string
---@return any
function json.decode(s)
  local v, at = value(s, 1)
  if s:find("%S", at) then fail(s, at, "the end") end
  return v
end

-- The objects of a file that has one a line.
function json.lines(path)
  local out = {}
  for line in assert(io.open(path)):lines() do
    if line:find("%S") then out[#out + 1] = json.decode(line) end
  end
  return out
end

-- Numbers that JSON cannot write stand as strings.
local special = {inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0}
function json.number(v)
  if type(v) == "string" then return special[v] or v end
  return v
end

return json
