-- ModuleList: modules in a list, counted from 1 by # [i] and ipairs, named from 0 in the state dict.

local args = require "ampl.args"
local Module = require "ampl.nn.Module"
local raise = require "ampl.raise"

---@class ampl.nn.ModuleList : ampl.nn.Module
local ModuleList = Module:extend("ModuleList")

---`ModuleList{a, b}` or `ModuleList(a, b)`.
function ModuleList:init(...)
  local list, n = {...}, select("#", ...)
  while n > 0 and list[n] == nil do n = n - 1 end
  if n <= 1 and type(list[1]) == "table" and not Module.is(list[1]) then return self:extend_with(list[1]) end
  for i = 1, n do
    local m = list[i]
    local empty = i == n and type(m) == "table" and next(m) == nil              -- {}: no options
    if not empty then self:append(m) end
  end
end

---@param m ampl.nn.Module
---@return ampl.nn.ModuleList self
function ModuleList:append(m)
  if not Module.is(m) then
    raise("EARG", self.name, ("entry %d must be a module, not %s"):format(#self + 1, args.shown(m)))
  end
  self[#self + 1] = m
  return self
end

---@param list ampl.nn.Module[]
---@return ampl.nn.ModuleList self
ModuleList.extend_with = args.declare_method("extend_with", {{"list", "list"}}, function(self, o)
  for _, m in ipairs(o.list) do self:append(m) end
  return self
end)

return ModuleList
