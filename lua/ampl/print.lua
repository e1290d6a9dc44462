-- tostring of a tensor: values, shape, dtype, device; only the edges of a big one are read.

local core = require "ampl.core"

local edge, whole = 3, 200              -- entries shown at each end; elements up to which all are shown

-- x with only its edges, and for each dimension whether something was left out.
local function edges(x)
  local cut = {}
  if x:numel() <= whole then return x, cut end
  for d, n in ipairs(x.shape) do
    if n > 2 * edge then
      x = core.cat({x:narrow(d, 1, edge), x:narrow(d, n - edge + 1, edge)}, d)
      cut[d] = true
    end
  end
  return x, cut
end

-- One format for all elements, as short as it can be.
local function formatter(list)
  local integral, big, small = true, 0, math.huge
  for _, v in ipairs(list) do
    if type(v) == "boolean" or math.type(v) == "integer" then return tostring end
    local a = math.abs(v)
    if v == v and a < math.huge then
      if v ~= math.floor(v) then integral = false end
      if a > big then big = a end
      if a > 0 and a < small then small = a end
    end
  end
  local form = "%.4f"
  if integral and big < 1e8 then form = "%.0f." elseif big >= 1e5 or (big > 0 and small < 1e-3) then form = "%.4e" end
  return function(v)
    if v ~= v then return "nan" end
    if v == math.huge then return "inf" end
    if v == -math.huge then return "-inf" end
    return form:format(v)
  end
end

local function flatten(t, out)
  if type(t) ~= "table" then
    out[#out + 1] = t
  else
    for _, v in ipairs(t) do flatten(v, out) end
  end
  return out
end

local function lines(t, d, rank, cut, indent, show, width)
  if type(t) ~= "table" then return (" "):rep(width - #show(t)) .. show(t) end
  local parts = {}
  for i, v in ipairs(t) do
    if cut[d] and i == edge + 1 then parts[#parts + 1] = "..." end
    parts[#parts + 1] = lines(v, d + 1, rank, cut, indent .. " ", show, width)
  end
  local between = d == rank and ", " or "," .. ("\n"):rep(rank - d) .. indent .. " "
  return "{" .. table.concat(parts, between) .. "}"
end

return function(x)
  local shape = "{" .. table.concat(x.shape, ", ") .. "}"
  local note = ("%s %s, %s"):format(x.dtype, shape, x.device) .. (x.requires_grad and ", requires_grad" or "")
  if x:numel() == 0 then return ("tensor({}, %s)"):format(note) end
  local _ <close> = core.scope_open()
  local shown, cut = edges(x:detach())
  local values = shown:totable()
  local list = flatten(values, {})
  local show, width = formatter(list), 0
  for _, v in ipairs(list) do width = math.max(width, #show(v)) end
  return ("tensor(%s, %s)"):format(lines(values, 1, x.ndim, cut, "       ", show, width), note)
end
