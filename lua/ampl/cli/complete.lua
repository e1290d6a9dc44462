-- Completion of Lua names at the interactive prompt: globals, fields, methods.

local ampl = require "ampl"

-- Every string key that `value` answers to, into the set `names`.
local function collect(value, names, depth)
  if type(value) == "table" then
    for key in next, value do
      if type(key) == "string" then names[key] = true end
    end
  end
  local mt = debug.getmetatable(value)
  if not mt or depth > 8 then return end
  if type(mt.__names) == "function" then             -- lazy modules and tensors: what their __index would find
    for _, name in ipairs(mt.__names(value)) do names[name] = true end
  end
  if type(mt.__index) == "table" then collect(mt.__index, names, depth + 1) end
end

local function field(value, name)
  return value[name]
end

-- The value of "a.b:c", or nil. Looks fields up, calls nothing.
local function resolve(path)
  local value = _G
  for name in path:gmatch("[%w_]+") do
    local ok, v = pcall(field, value, name)
    if not ok or v == nil then return nil end
    value = v
  end
  return value
end

-- The longest prefix that all of the sorted list have.
local function common(list)
  local first, last = list[1], list[#list]
  local n = 0
  while n < #first and first:byte(n + 1) == last:byte(n + 1) do n = n + 1 end
  return first:sub(1, n)
end

--- What may follow `text`, the line up to the cursor.
---@param text string
---@return string insert what all candidates go on with
---@return string[] candidates sorted
return function(text)
  local path, after, value, word
  path, after = text:match("([%a_][%w_%.:]*)[%.:]([%w_]*)$")
  if path then
    value, word = resolve(path), after
  else
    word = text:match("[%)%]}]:([%w_]*)$")
    if word then
      value = ampl.zeros(1)                          -- what a call gives is most often a tensor
    elseif not text:find("[%)%]}]%.[%w_]*$") then
      word = text:match("[%a_][%w_]*$")
      value = word and _G
    end
  end
  local names, list = {}, {}
  if value ~= nil and value ~= false then collect(value, names, 0) end
  for name in pairs(names) do
    if name:sub(1, #word) == word and name:match("^[%a_][%w_]*$") and (name:sub(1, 2) ~= "__" or word ~= "") then
      list[#list + 1] = name
    end
  end
  if #list == 0 then return "", list end
  table.sort(list)
  return common(list):sub(#word + 1), list
end
