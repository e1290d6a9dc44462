-- `ampl inspect FILE.safetensors`: what is in a file of weights.

local ampl = require "ampl"
local core = require "ampl.core"

local MOST = 200                        -- bytes of a value that are shown

local function count(n)
  local text = tostring(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

-- Text of a file, which may hold what a terminal obeys, and how many characters wide it is.
local function shown(text)
  text = core.escape(#text > MOST and text:sub(1, MOST) .. "..." or text)
  return text, utf8.len(text)
end

-- Least, greatest and non-finite values of a tensor.
local function range(t)
  if t:numel() == 0 then return "" end
  if t.dtype == "bool" then t = t:to("u8") end
  if t.dtype == "i64" or t.dtype == "i32" or t.dtype == "u8" then
    return ("%d to %d"):format(t:amin():item(), t:amax():item())
  end
  local x = t:to("f64")
  local bad = x:isfinite():logical_not():sum():item()
  local text = ("%.4g to %.4g"):format(x:amin():item(), x:amax():item())
  return bad == 0 and text or ("%s, %s not finite"):format(text, count(bad))
end

---@param path string?
return function(path)
  if not path then
    io.stderr:write("usage: ampl inspect FILE.safetensors\n")
    os.exit(2, true)
  end
  local tensors, metadata = ampl.safetensors.load(path)
  if not tensors then error(metadata, 0) end
  local names, total, bytes, widest = {}, 0, 0, 0
  for name, t in pairs(tensors) do
    names[#names + 1] = name
    total, bytes = total + t:numel(), bytes + t:numel() * #ampl.zeros(1, {dtype = t.dtype}):tobytes()
    widest = math.max(widest, select(2, shown(name)))
  end
  table.sort(names)
  widest = math.min(widest, 60)
  for _, name in ipairs(names) do
    local t = tensors[name]
    local text, width = shown(name)
    print(("%s%s  %-4s  %-20s %s"):format(text, (" "):rep(widest - width), t.dtype,
      "{" .. table.concat(t.shape, ", ") .. "}", range(t)))
  end
  local keys = {}
  for key in pairs(metadata) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do print(("metadata %s: %s"):format((shown(key)), (shown(metadata[key])))) end
  print(("%d tensors, %s elements, %s bytes"):format(#names, count(total), count(bytes)))
end
