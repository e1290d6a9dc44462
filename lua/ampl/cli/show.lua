-- How the interactive prompt prints values.

local ENTRIES = 20          -- of a table, before it is elided

local show

local function key_text(key)
  if type(key) == "string" and key:match("^[%a_][%w_]*$") then return key end
  return "[" .. show(key, 1) .. "]"
end

-- Lists in order, then the other keys, sorted by their text.
local function table_text(t, depth)
  local parts, n = {}, rawlen(t)
  for i = 1, math.min(n, ENTRIES) do parts[#parts + 1] = show(rawget(t, i), depth + 1) end
  if n > ENTRIES then parts[#parts + 1] = ("... %d more"):format(n - ENTRIES) end
  local fields = {}
  for key, value in next, t do
    if not (math.type(key) == "integer" and key >= 1 and key <= n) then
      fields[#fields + 1] = {key_text(key), value}
    end
  end
  table.sort(fields, function(a, b) return a[1] < b[1] end)
  for i = 1, math.min(#fields, ENTRIES) do
    parts[#parts + 1] = fields[i][1] .. " = " .. show(fields[i][2], depth + 1)
  end
  if #fields > ENTRIES then parts[#parts + 1] = ("... %d more"):format(#fields - ENTRIES) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- A table without a text of its own is shown by its entries, two levels deep.
function show(value, depth)
  if type(value) == "string" and depth > 0 then return ("%q"):format(value) end
  local mt = type(value) == "table" and getmetatable(value)
  if type(value) ~= "table" or (mt and (type(mt) ~= "table" or mt.__tostring or mt.__name)) or depth > 2 then
    return tostring(value)
  end
  return table_text(value, depth)
end

-- The last value stays in `_`, a tensor without its graph, which would stay alive with it.
local function keep(value)
  if type(value) == "userdata" then
    local ok, detached = pcall(function() return value:detach() end)
    if ok then value = detached end
  end
  rawset(_G, "_", value)
end

--- Prints values on one line, unless `quiet`, and keeps the first in the global `_`.
---@param quiet boolean
return function(quiet, ...)
  local n = select("#", ...)
  if n > 0 then keep((...)) end
  if quiet then return end
  local parts = table.pack(...)
  for i = 1, n do parts[i] = show(parts[i], 0) end
  print(table.concat(parts, "\t"))
end
