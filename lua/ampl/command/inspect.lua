-- `ampl inspect FILE.safetensors`: what is in a file of weights.

local ampl = require "ampl"

local function count(n)
  local text = tostring(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

-- Least, greatest and non-finite values of a float tensor.
local function range(t)
  if t:numel() == 0 then return "" end
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
    total, bytes = total + t:numel(), bytes + #t:tobytes()
    widest = math.max(widest, #name)
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local t = tensors[name]
    print(("%-" .. math.min(widest, 60) .. "s  %-4s  %-20s %s"):format(name, t.dtype,
      "{" .. table.concat(t.shape, ", ") .. "}", range(t)))
  end
  local keys = {}
  for key in pairs(metadata) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do print(("metadata %s: %s"):format(key, (tostring(metadata[key]):sub(1, 200)))) end
  print(("%d tensors, %s elements, %s bytes"):format(#names, count(total), count(bytes)))
end
