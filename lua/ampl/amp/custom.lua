-- custom_fwd and custom_bwd: how a Function's forward and backward behave in autocast regions.

local core = require "ampl.core"
local autocast = require "ampl.amp.autocast"
local cast = require "ampl.amp.cast"
local args = require "ampl.args"
local raise = require "ampl.raise"

local custom = {}

local is_tensor = core.is_tensor

-- Whether v is a Function's context: it saves tensors, and is none.
local function is_context(v)
  if is_tensor(v) or (type(v) ~= "table" and type(v) ~= "userdata") then return false end
  return type(v.save) == "function" and type(v.saved) == "function"
end

local function device_of(v)
  if is_tensor(v) then return v.device end
  if type(v) ~= "table" or not args.is_plain(v) then return nil end
  for _, e in pairs(v) do
    local d = device_of(e)
    if d then return d end
  end
end

local function check(op, fn) args.callable(op, "fn", fn) end

local read = args.signature("custom_fwd", {{"cast_inputs", "dtype?"}})

---Wraps a forward.  With cast_inputs, float operands are cast to that dtype in a region, and the function runs with
---autocast off; without, it runs under the region as it is.  A Function's context remembers which, for custom_bwd.
---Outside a region nothing is cast.  The function may also be any function of tensors, without a context.
---@param fn function
---@param options? {cast_inputs: string}
---@return function
function custom.custom_fwd(fn, options)
  check("custom_fwd", fn)
  local dtype = read(options).cast_inputs
  if dtype == "f64" then raise("EDTYPE", "custom_fwd", "cast_inputs must be f32, f16 or bf16, not f64") end
  return function(...)
    local list = table.pack(...)
    local context = is_context((...)) and (...) or nil
    local device
    for i = context and 2 or 1, list.n do device = device or device_of(list[i]) end
    local on = autocast.is_autocast_enabled(device)
    if context then
      context.autocast = {enabled = on and not dtype, dtype = autocast.get_autocast_dtype(device), device = device}
    end
    if not (on and dtype) then return fn(...) end
    for i = context and 2 or 1, list.n do list[i] = cast(list[i], dtype) end
    local _ <close> = autocast.autocast{enabled = false}
    return fn(table.unpack(list, 1, list.n))
  end
end

---Wraps a backward: it runs under the region that the forward, wrapped by custom_fwd, ran under.
---@param fn function
---@return function
function custom.custom_bwd(fn)
  check("custom_bwd", fn)
  return function(context, ...)
    local was = is_context(context) and context.autocast
    if not was then
      raise("ESTATE", "custom_bwd", "the context knows no region: wrap the Function's forward by custom_fwd")
    end
    local _ <close> = autocast.autocast{enabled = was.enabled, dtype = was.dtype}
    return fn(context, ...)
  end
end

return custom
