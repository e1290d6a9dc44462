-- Completion of Lua names at the interactive prompt: globals, fields, methods.

local core = require "ampl.core"

-- What every tensor has, beside its methods.
local TENSOR_FIELDS = {"shape", "dtype", "device", "grad", "requires_grad", "ndim", "is_leaf"}

local function add_keys(t, names)
  for key in pairs(t) do                                -- __pairs lists what lazy modules have not loaded yet
    if type(key) == "string" then names[key] = true end
  end
end

-- Every string key that `value` answers to, into the set `names`.
local function collect(value, names)
  for _ = 1, 8 do                                       -- up the chain of __index
    if type(value) == "table" then add_keys(value, names) end
    local mt = debug.getmetatable(value)
    value = type(mt) == "table" and type(mt.__index) == "table" and mt.__index
    if not value then return end
  end
end

local function collect_tensor(names)
  add_keys(core.methods, names)
  for _, name in ipairs(TENSOR_FIELDS) do names[name] = true end
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
  local path, after = text:match("([%a_][%w_%.:]*)[%.:]([%w_]*)$")
  local word, names, list = after, {}, {}
  if path then
    local value = resolve(path)
    if core.is_tensor(value) then
      collect_tensor(names)
    elseif value ~= nil then
      collect(value, names)
    end
  elseif text:find("[%)%]}]:[%w_]*$") then              -- what a call gives is most often a tensor
    word = text:match("[%w_]*$")
    collect_tensor(names)
  elseif not text:find("[%)%]}]%.[%w_]*$") then
    word = text:match("[%a_][%w_]*$")
    if word then collect(_G, names) end
  end
  for name in pairs(names) do
    if name:sub(1, #word) == word and name:match("^[%a_][%w_]*$") and (name:sub(1, 1) ~= "_" or word ~= "") then
      list[#list + 1] = name
    end
  end
  if #list == 0 then return "", list end
  table.sort(list)
  return common(list):sub(#word + 1), list
end
