-- LSTM (Hochreiter and Schmidhuber 1997): a state {h, c}; gates input, forget, cell, output, in this order.

---@class ampl.nn.LSTM : ampl.nn.Recurrent
return require "ampl.nn.recurrent"("LSTM", 4, 2, function(self, from_input, from_state, state)
  local gates, n = from_input + from_state, self.hidden_size
  local function gate(k) return gates:narrow(-1, (k - 1) * n + 1, n) end
  local c = gate(2):sigmoid() * state[2] + gate(1):sigmoid() * gate(3):tanh()
  return {gate(4):sigmoid() * c:tanh(), c}
end)
