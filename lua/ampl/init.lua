-- ampl: a deep-learning training engine.  `local ampl = require "ampl"`.
--
-- The ops come from the core; everything under a name of its own (ampl.nn, ampl.optim ...) is loaded when first used.

local core = require "ampl.core"

---@class ampl
local ampl = {
  _VERSION = core._VERSION,
  tensor = core.tensor, from_bytes = core.from_bytes,
  grad = core.grad,
  is_grad_enabled = core.is_grad_enabled, is_inference_mode_enabled = core.is_inference_mode_enabled,
  memory_limit = core.memory_limit, reset_peak_memory = core.reset_peak_memory,
  manual_seed = core.manual_seed, get_rng_state = core.get_rng_state, set_rng_state = core.set_rng_state,
  set_num_threads = core.set_num_threads, get_num_threads = core.get_num_threads,
  synchronize = core.synchronize, on_warning = core.on_warning,
}

-- name -> the module that has it; a module of the same name is the value itself
local modules = {nn = true, optim = true, amp = true, data = true, models = true, safetensors = true}
local fields = {
  no_grad = "autograd", enable_grad = "autograd", inference_mode = "autograd", Function = "autograd",
  set_detect_anomaly = "autograd", detect_anomaly = "autograd", gradcheck = "gradcheck", gradgradcheck = "gradcheck",
  scope = "scope", memory = "system", ops = "system", devices = "system", fork_rng = "system",
  is_available = "system", backends = "system", help = "help",
}

local function load(t, name)
  local value
  if modules[name] then
    value = require("ampl." .. name)
  elseif fields[name] then
    value = require("ampl." .. fields[name])[name]
  elseif core.functional[name] then                     -- an op; nil for what only nn.functional has
    value = core[name]
  end
  rawset(t, name, value)
  return value
end

-- Ops that are made of others in Lua register themselves as functions and methods.
require "ampl.ops"

return setmetatable(ampl, {
  __index = load,
  __pairs = function(t)
    for name in pairs(modules) do load(t, name) end
    for name in pairs(fields) do load(t, name) end
    for name in pairs(core.functional) do load(t, name) end
    return next, t, nil
  end,
})
