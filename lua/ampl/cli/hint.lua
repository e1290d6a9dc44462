-- What the report of an error adds for who reads it: the name that is near a misspelt one, the colon that a method
-- wants.

local core = require "ampl.core"

local OWN_SOURCE = "^%[ampl%]"

-- The places whose names are looked at, in this order.
local PLACES = {
  "ampl", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "amp", "data", "models",
}

local function place(path)
  local t = require "ampl"
  for name in path:gmatch("[%w_]+") do
    if name ~= "ampl" then t = type(t) == "table" and t[name] or nil end
  end
  return type(t) == "table" and t or {}
end

local function add_keys(names, t)
  for name in pairs(t) do
    if type(name) == "string" and not name:find("^_") then names[name] = true end
  end
end

-- The methods of every class, and of those that it derives from.
local function add_methods(names)
  add_keys(names, core.methods)
  for _, path in ipairs(PLACES) do
    for _, class in pairs(place(path)) do
      while type(class) == "table" and rawget(class, "__index") == class do
        for name, value in next, class do
          if type(name) == "string" and type(value) == "function" and not name:find("^_") then names[name] = true end
        end
        class = getmetatable(class)
      end
    end
  end
end

-- The names that a value of this kind may have: what is called, or a table of more where it is indexed.
local function known(verb, kind)
  local names = {}
  if kind == "global" then add_keys(names, _G) end
  if kind == "method" then add_methods(names) end
  if kind ~= "field" then return names end
  if verb == "index" then
    for name, value in pairs(place("ampl")) do
      if type(value) == "table" then names[name] = true end
    end
    return names
  end
  for _, path in ipairs(PLACES) do add_keys(names, place(path)) end
  add_methods(names)                    -- a method that is called with a dot
  return names
end

-- How many letters must be changed, put in, left out, or exchanged with their neighbours, to make b of a.
local function distance(a, b)
  local before, row = nil, {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local new = {[0] = i}
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      new[j] = math.min(row[j] + 1, new[j - 1] + 1, row[j - 1] + (same and 0 or 1))
      if before and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        new[j] = math.min(new[j], before[j - 2] + 1)
      end
    end
    before, row = row, new
  end
  return row[#b]
end

-- The name among `names` (a set) that is near enough to be meant; nil: none.
local function nearest(name, names)
  local best, least = nil, math.max(1, #name // 3) + 0.5
  for candidate in pairs(names) do
    if candidate ~= name and math.abs(#candidate - #name) <= least then
      local d = distance(name:lower(), candidate:lower())
      d = d + distance(name, candidate) / 1000          -- of names that differ in case only, the nearer
      if d < least or (d == least and candidate < best) then best, least = candidate, d end
    end
  end
  return best
end

local function misspelt(text)
  local verb, kind, name = text:match("attempt to (%a+) a nil value %((%a+) '([%w_]+)'%)")
  if name then return nearest(name, known(verb, kind)) end
  local option, list = text:match('unknown option "?([%w_]+)"?; known are:? ([%w_, ]+)')
  if not option then return nil end
  local names = {}
  for n in list:gmatch("[%w_]+") do names[n] = true end
  return nearest(option, names)
end

local function is_own(info) return info ~= nil and info.short_src:find(OWN_SOURCE) ~= nil end

-- The method of ours at level `l` of the stack, if it was called without its object: its name where a user's code calls
-- it, else "method".  The second value: whether the stack ends here.
local function lacks_self(l)
  local info = debug.getinfo(l + 1, "Snu")
  if not info then return nil, true end
  if info.what == "C" or info.nparams == 0 or not is_own(info) then return nil end
  local name, self = debug.getlocal(l + 1, 1)
  if name ~= "self" or type(self) == "table" and getmetatable(self) then return nil end
  return not is_own(debug.getinfo(l + 2, "S")) and info.name or "method"
end

local function wants_colon(e, text)
  local op = type(e) == "table" and e.code == "EARG" and text:find("is missing", 1, true) and e.op
  if op and core.methods[op] then return "x:" .. op .. "()" end
  for l = 2, 40 do
    local name, last = lacks_self(l)
    if name then return "object:" .. name .. "()" end
    if last then return nil end
  end
end

---A sentence to be put behind the text of an error, or nil.  To be called by a message handler.
---@param e any the error
---@param text string what it says
---@return string?
return function(e, text)
  local name = misspelt(text)
  if name then return "did you mean " .. name .. "?" end
  local call = wants_colon(e, text)
  return call and "a method is called with a colon: " .. call
end
