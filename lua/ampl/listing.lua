-- Tables of data that print what they hold: state dicts, parameter groups.  They stay plain tables in all else.

local core = require "ampl.core"

local LINES = 100                       -- after which a long one is elided

local function by_kind(a, b)
  if type(a) == type(b) then return a < b end
  return type(a) == "number"
end

local function text_of(v)
  if core.is_tensor(v) then
    local ok, shape = pcall(function() return v.shape end)
    return ok and ("%s %s"):format(v.dtype, shape) or tostring(v)
  end
  if type(v) == "string" then return ("%q"):format(v) end
  if math.type(v) == "float" then return ("%.6g"):format(v) end
  return tostring(v)
end

-- A list of numbers and strings in one line.
local function short_list(t)
  local parts = {}
  for i, v in ipairs(t) do
    if type(v) == "table" or core.is_tensor(v) then return nil end
    parts[i] = text_of(v)
  end
  for k in next, t do
    if math.type(k) ~= "integer" or k > #parts then return nil end
  end
  return #parts <= 20 and "{" .. table.concat(parts, ", ") .. "}" or nil
end

local function add(lines, t, indent, seen)
  local keys = {}
  for k in next, t do
    if type(k) == "string" or type(k) == "number" then keys[#keys + 1] = k end
  end
  table.sort(keys, by_kind)
  seen[t] = true
  for _, k in ipairs(keys) do
    local v = rawget(t, k)
    if type(v) == "table" and not seen[v] and (getmetatable(v) == nil or getmetatable(v).__plain) then
      local short = short_list(v)
      lines[#lines + 1] = ("%s%s: %s"):format(indent, k, short or "")
      if not short then add(lines, v, indent .. "  ", seen) end
    else
      lines[#lines + 1] = ("%s%s: %s"):format(indent, k, seen[v] and "..." or text_of(v))
    end
  end
  seen[t] = nil
end

local Listing = {__name = "ampl.State", __plain = true}

function Listing:__tostring()
  if next(self) == nil then return "{}" end
  local lines = {}
  add(lines, self, "", {})
  local n = #lines
  if n > LINES then
    table.move(lines, n - 4, n, LINES - 4)
    lines[LINES - 5] = ("... %d more"):format(n - LINES + 1)
    lines = {table.unpack(lines, 1, LINES)}
  end
  return table.concat(lines, "\n")
end

---Gives a plain table a text.
---@param t table
---@return table t
return function(t) return setmetatable(t, Listing) end
