-- Classes with single inheritance: `local SGD = Optimizer:extend("SGD")`, `SGD(...)` makes an object and calls init.

---@class ampl.Class
---@field name string
local Class = {name = "Class"}
Class.__index = Class

local meta = {}
function meta.__call(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end
function meta.__tostring(class) return "class " .. class.name end
setmetatable(Class, meta)

---What an object prints as, where its class says no more.
function Class:__tostring() return self.name .. " (object)" end

---A class that inherits from this one.
---@param name string
---@return ampl.Class
function Class:extend(name)
  local class = {name = name}
  for key, value in pairs(self) do                      -- metamethods are not looked up through __index
    if type(key) == "string" and key:sub(1, 2) == "__" then class[key] = value end
  end
  class.__index = class
  return setmetatable(class, {__index = self, __call = meta.__call, __tostring = meta.__tostring})
end

---Whether `self` is an object of `class` or of one that inherits from it.
---@param class ampl.Class
---@return boolean
function Class:is_a(class)
  local c = getmetatable(self)
  while c do
    if c == class then return true end
    local m = getmetatable(c)
    c = m and m.__index
  end
  return false
end

function Class:init() end

return Class
