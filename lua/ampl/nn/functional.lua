-- ampl.nn.functional: the ops under PyTorch's names, and what is made of several ops.

local core = require "ampl.core"

return setmetatable({}, {
  __index = function(t, name)
    local f = core.functional[name]
    rawset(t, name, f)
    return f
  end,
})
