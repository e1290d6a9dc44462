-- Memory, devices, the random stream, settings of backends.

local core = require "ampl.core"
local raise = require "ampl.raise"

local system = {}

---What memory holds: {live, peak, cached, limit, tensors, storages, nodes, kinds = {tensors, gradients, ...}}.
---@param device? string
---@return table
function system.memory(device)
  if device ~= nil and not core.is_available(device) then
    raise("EDEVICE", "memory", ("there is no device %q here"):format(tostring(device)))
  end
  return core.memory()
end

---The names of the devices here, and what was looked at: {name = file, why = reason why it was refused, or nil}.
---@return string[] names, table[] candidates
function system.devices()
  return core.devices()
end

---Runs fn(...) and puts the random stream back to where it was.
function system.fork_rng(fn, ...)
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
