-- ModuleList: modules in a list, counted from 1 by # [i] and ipairs, named from 0 in the state dict.

local args = require "ampl.args"
local Module = require "ampl.nn.Module"
local raise = require "ampl.raise"

---@class ampl.nn.ModuleList : ampl.nn.Module
local ModuleList = Module:extend("ModuleList")

---`ModuleList{a, b}` or `ModuleList(a, b)`.
function ModuleList:init(...)
  local list = {...}
  if type(list[1]) == "table" and not Module.is(list[1]) then list = list[1] end
  for _, m in ipairs(list) do
    if not (type(m) == "table" and next(m) == nil) then self:append(m) end      -- {}: no options
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
function ModuleList:extend_with(list)
  for _, m in ipairs(list) do self:append(m) end
  return self
end

return ModuleList
