-- RNN: h' = tanh(W x + b + U h + c), or relu.

local recurrent = require "ampl.nn.recurrent"

---@class ampl.nn.RNN : ampl.nn.Recurrent
local RNN = recurrent("RNN", 1, 1, function(self, from_input, from_state)
  local sum = from_input + from_state
  return {self.nonlinearity == "relu" and sum:relu() or sum:tanh()}
end, {{"nonlinearity", "string", "tanh", choices = {"tanh", "relu"}}})

function RNN:configure(o)
  self.nonlinearity = o.nonlinearity
end

return RNN
