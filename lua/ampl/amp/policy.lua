-- policy: what autocast does with each op, read from the op records.

local core = require "ampl.core"
local raise = require "ampl.raise"
local args = require "ampl.args"

local order = {"LOW", "F32", "F32_OUT", "WIDEST", "REFUSE", "KEEP"}

local Lists = {}

function Lists:__tostring()
  local lines = {}
  for _, category in ipairs(order) do
    local list = self[category]
    if list then
      lines[#lines + 1] = ("%s: %s\n  %s"):format(category, list.why, table.concat(list, " "))
    end
  end
  return table.concat(lines, "\n")
end

---The autocast category of an op and what it means; without an op, all of them: category -> list of ops, with the
---meaning in `why`, and readable by tostring.
---@param op? string
---@return string|table category
---@return string? why
return function(op)
  if op ~= nil then
    local record = type(op) == "string" and core.ops(op)
    if not record then raise("EARG", "policy", ("there is no op %s"):format(args.shown(op))) end
    return record.category, record.why
  end
  local lists = setmetatable({}, Lists)
  for _, record in ipairs(core.ops()) do
    local list = lists[record.category] or {why = record.why}
    lists[record.category] = list
    list[#list + 1] = record.name
  end
  for _, list in pairs(lists) do table.sort(list) end
  return lists
end
