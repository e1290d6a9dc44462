-- ampl.amp: automatic mixed precision.

local lazy = require "ampl.lazy"

return lazy("ampl.amp", {"GradScaler", "Accumulator", "policy"}, {
  autocast = "ampl.amp.autocast",
  is_autocast_enabled = "ampl.amp.autocast",
  get_autocast_dtype = "ampl.amp.autocast",
  clear_autocast_cache = "ampl.amp.autocast",
  cache_stats = "ampl.amp.autocast",
  custom_fwd = "ampl.amp.custom",
  custom_bwd = "ampl.amp.custom",
})
