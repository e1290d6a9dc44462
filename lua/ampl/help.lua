-- help(x): what an op, or a function of one, does.

local core = require "ampl.core"

local help = {}

local function signature(op)
  local parts = {}
  for _, a in ipairs(op.args) do
    local text = a.name
    if a.default ~= nil then
      text = text .. " = " .. tostring(a.default)
    elseif not a.required then
      text = text .. "?"
    end
    parts[#parts + 1] = text
  end
  return op.name .. "(" .. table.concat(parts, ", ") .. ")"
end

local function of_op(op)
  local out = {signature(op), "  " .. op.doc}
  for _, a in ipairs(op.args) do
    local kind = a.choices and '"' .. a.choices:gsub("|", '" or "') .. '"' or a.kind
    out[#out + 1] = ("  %-16s %s%s"):format(a.name, kind, a.doc ~= "" and ": " .. a.doc or "")
  end
  if op.category ~= "KEEP" then out[#out + 1] = "  autocast: " .. op.why end
  if not op.differentiable then out[#out + 1] = "  has no gradient" end
  return table.concat(out, "\n")
end

---The text about an op, by its name or as the function itself.
---@param x string|function
---@return string
function help.help(x)
  if type(x) == "function" then
    for _, op in ipairs(core.ops()) do
      if core.functional[op.name] == x then return of_op(op) end
    end
    return "a function"
  end
  local op = type(x) == "string" and core.ops(x)
  if op then return of_op(op) end
  if core.is_tensor(x) then return "a tensor: " .. tostring(x) end
  return ("no help on %s; ampl.ops() lists the ops"):format(tostring(x))
end

return help
