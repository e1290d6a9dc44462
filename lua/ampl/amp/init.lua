-- ampl.amp: automatic mixed precision.

local lazy = require "ampl.lazy"

-- name -> the module that has it among others
local fields = {
  autocast = "autocast", is_autocast_enabled = "autocast", get_autocast_dtype = "autocast",
  clear_autocast_cache = "autocast", cache_stats = "autocast", custom_fwd = "custom", custom_bwd = "custom",
  initialize = "initialize", scale_loss = "initialize", master_params = "initialize",
}

return lazy("ampl.amp", {"Accumulator", "GradScaler", "policy"}, {
  load = function(name) return fields[name] and require("ampl.amp." .. fields[name])[name] end,
  names = function()
    local out = {}
    for name in pairs(fields) do out[#out + 1] = name end
    return out
  end,
})
