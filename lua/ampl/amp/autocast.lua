-- autocast: regions in which ops cast their operands by category.
--
--   local loss = amp.autocast(function() return F.cross_entropy(model(x), y) end)
--   do local _ <close> = amp.autocast{dtype = "f16"}  ... end

local core = require "ampl.core"
local args = require "ampl.args"
local raise = require "ampl.raise"

local M = {}

local known = {device = "string", dtype = "string", enabled = "boolean", cache_enabled = "boolean", f32 = "table",
               low = "table"}

local function checked(options)
  for name, v in pairs(options) do
    if not known[name] then
      raise("EARG", "autocast", ("unknown option %s; known are cache_enabled, device, dtype, enabled, f32, low")
        :format(args.shown(name)))
    end
    if type(v) ~= known[name] then
      raise("EARG", "autocast", ("%s must be a %s, not %s"):format(name, known[name], args.shown(v)))
    end
  end
  return options
end

---Runs `fn` in a region and returns its results; without a function, enters the region at once and returns a value to
---be closed: `local _ <close> = amp.autocast{...}`.
---
---Options: device (default: wherever the tensors are), dtype (the low one; default: f16 on CUDA, bf16 on the CPU),
---enabled, cache_enabled (default: as outside), f32 and low (lists of ops to run in f32, or in the low dtype, here).
---@param options? table|string|fun(...): any the options, a device's name, or the function
---@param fn? fun(...): any
---@param ... any what the function gets
---@return any ... the function's results, or the region
function M.autocast(options, fn, ...)
  if type(options) == "function" then return M.autocast(nil, options, fn, ...) end
  if type(options) == "string" then options = {device = options} end
  if options ~= nil and type(options) ~= "table" then
    raise("EARG", "autocast", ("takes a table of options or a function, not %s"):format(args.shown(options)))
  end
  if fn ~= nil and type(fn) ~= "function" then
    raise("EARG", "autocast", ("the last argument must be a function, not %s"):format(args.shown(fn)))
  end
  if options and not args.is_plain(options) then
    raise("EARG", "autocast", ("takes a table of options or a function, not %s"):format(args.shown(options)))
  end
  options = checked(options or {})
  if not fn then return core.autocast_enter(options) end
  local _ <close> = core.autocast_enter(options)
  return fn(...)
end

---Whether a region is in force.
---@param device? string "cpu" by default
---@return boolean
M.is_autocast_enabled = args.declare("is_autocast_enabled", {{"device", "device?"}}, function(o)
  return (core.autocast_state(o.device))
end)

---The low dtype of the region in force, or the device's default outside of one.
---@param device? string "cpu" by default
---@return string
M.get_autocast_dtype = args.declare("get_autocast_dtype", {{"device", "device?"}}, function(o)
  local _, dtype = core.autocast_state(o.device)
  return dtype
end)

---Drops the casts of weights that the present regions keep.
function M.clear_autocast_cache() core.autocast_clear() end

---What the cache of weight casts did since the start: `casts` made and `hits`; `entries` and `bytes` it holds now.
---@return {hits: integer, casts: integer, entries: integer, bytes: integer}
function M.cache_stats() return core.autocast_stats() end

return M
