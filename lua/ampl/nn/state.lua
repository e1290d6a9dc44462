-- State dicts of modules: taking one over, and moving tensors between dtypes and devices.

local core = require "ampl.core"
local args = require "ampl.args"
local listing = require "ampl.listing"
local raise = require "ampl.raise"

local state = {}

local function shape(t)
  return "{" .. table.concat(t.shape, ", ") .. "}"
end

-- "missing: a, b (and 7 more)"
local function listed(title, names)
  if #names == 0 then return "" end
  table.sort(names)
  local shown = {table.unpack(names, 1, 20)}
  local more = #names > 20 and (" (and %d more)"):format(#names - 20) or ""
  return ("\n  %s: %s%s"):format(title, table.concat(shown, ", "), more)
end

---Copies `dict` into the tensors of `entries`, a list of {name, tensor, may be missing}.  A tensor with several names
---need stand in `dict` under one of them only.
---@param op string
---@param entries table[]
---@param dict table<string, ampl.Tensor>
---@param strict boolean
---@return table {missing_keys, unexpected_keys, mismatched_keys}
function state.load(op, entries, dict, strict)
  local known, missing, unexpected, mismatched, copies, why = {}, {}, {}, {}, {}, {}
  local given = {}
  for _, entry in ipairs(entries) do
    if dict[entry[1]] ~= nil then given[entry[2]] = true end
  end
  for _, entry in ipairs(entries) do
    local name, tensor, optional = entry[1], entry[2], entry[3]
    local value = dict[name]
    known[name] = true
    if value == nil then
      if not optional and not given[tensor] then missing[#missing + 1] = name end
    elseif not core.is_tensor(value) then
      mismatched[#mismatched + 1] = name
      why[#why + 1] = ("%s (a %s)"):format(name, type(value))
    elseif shape(value) ~= shape(tensor) then
      mismatched[#mismatched + 1] = name
      why[#why + 1] = ("%s (%s, here %s)"):format(name, shape(value), shape(tensor))
    else
      copies[#copies + 1] = {tensor, value}
    end
  end
  for name in pairs(dict) do
    if not known[name] then unexpected[#unexpected + 1] = tostring(name) end
  end
  if strict and #missing + #unexpected + #mismatched > 0 then
    raise("EARG", op, "load_state_dict: the state does not fit; nothing was changed" .. listed("missing", missing) ..
          listed("unexpected", unexpected) .. listed("mismatched", why))
  end
  for _, copy in ipairs(copies) do copy[1]:detach():copy_(copy[2]:detach()) end
  table.sort(missing)
  table.sort(unexpected)
  table.sort(mismatched)
  return listing({missing_keys = missing, unexpected_keys = unexpected, mismatched_keys = mismatched})
end

local dtypes = {f32 = true, f16 = true, bf16 = true, f64 = true, i64 = true, i32 = true, u8 = true, bool = true}
local floats = {f32 = true, f16 = true, bf16 = true, f64 = true}
local read_target = args.parser({{"dtype", "string?"}, {"device", "device?"}})

---What "f16", "cuda:1" or a table means for Module:to.
---@param op string
---@param target string|table
---@return {dtype: string?, device: string?}
function state.target(op, target)
  local where = target
  if type(target) == "string" then where = dtypes[target] and {dtype = target} or {device = target} end
  if type(where) ~= "table" or not args.is_plain(where) then
    raise("EARG", op, "to: needs a dtype, a device or a table {dtype = ..., device = ...}, not " .. args.shown(target))
  end
  where = read_target:complete(op, "to: ", where)
  if where.dtype and not dtypes[where.dtype] then
    raise("EDTYPE", op, ("to: there is no dtype %s"):format(args.shown(where.dtype)))
  end
  if where.dtype and not floats[where.dtype] then
    raise("EDTYPE", op, "to: parameters are floats, not " .. where.dtype)
  end
  if where.device and not core.is_available(where.device) then
    raise("EDEVICE", op, ("to: there is no device, and no dtype, %s"):format(args.shown(where.device)))
  end
  return where
end

---A tensor on another device or, if it is a float, in another dtype; gradient and requires_grad go with it.
---@param old ampl.Tensor
---@param target {dtype: string?, device: string?}
---@return ampl.Tensor
function state.moved(old, target)
  local dtype = floats[old.dtype] and target.dtype or nil
  if (not dtype or dtype == old.dtype) and (not target.device or target.device == old.device) then return old end
  local where = {dtype = dtype, device = target.device}
  local new = old:detach():to(where)
  if old.requires_grad then new:requires_grad_(true) end
  if old.grad then new.grad = old.grad:detach():to(where) end
  return new
end

return state
