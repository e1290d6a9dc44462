-- Memory, devices, the random stream, settings of backends.

local core = require "ampl.core"
local args = require "ampl.args"
local raise = require "ampl.raise"

local system = {}

---What memory holds: {live, peak, cached, limit, tensors, storages, nodes, kinds = {tensors, gradients, ...}}.
---@param device? string
---@return table
system.memory = args.declare("memory", {{"device", "device?"}}, function(o)
  if o.device and not core.is_available(o.device) then
    raise("EDEVICE", "memory", ("there is no device %s here"):format(args.shown(o.device)))
  end
  return core.memory()
end)

---Whether a device is here: "cpu", "cuda", "cuda:1".
---@param device string
---@return boolean
system.is_available = args.declare("is_available", {{"device", "device"}}, function(o)
  return core.is_available(o.device)
end)

---The records of all ops, or of one (nil: there is none of that name).
---@param name? string
---@return table? record {name, doc, args, category, ...}
system.ops = args.declare("ops", {{"name", "string?"}}, function(o) return core.ops(o.name) end)

---The names of the devices here, and what was looked at: {name = file, why = reason why it was refused, or nil}.
---@return string[] names, table[] candidates
function system.devices()
  return core.devices()
end

---Runs fn(...) and puts the random stream back to where it was.
function system.fork_rng(fn, ...)
  args.callable("fork_rng", "fn", fn)
  local state = core.get_rng_state()
  local _ <close> = setmetatable({}, {__close = function() core.set_rng_state(state) end})
  return fn(...)
end

---Settings of backends: ampl.backends.cpu.isa (read only), .bf16_dot, .winograd.
system.backends = {
  cpu = setmetatable({}, {
    __index = function(_, name)
      if name == "isa" or name == "bf16_dot" or name == "winograd" then return core.cpu_setting(name) end
    end,
    __newindex = function(_, name, value)
      if name ~= "bf16_dot" and name ~= "winograd" then
        raise("EARG", "backends.cpu",
              ("there is no setting %q to write; there are bf16_dot and winograd"):format(tostring(name)))
      end
      if type(value) ~= "boolean" then
        raise("EARG", "backends.cpu", ("%s must be true or false, not %s"):format(name, tostring(value)))
      end
      core.cpu_setting(name, value)
    end,
  }),
}

return system
