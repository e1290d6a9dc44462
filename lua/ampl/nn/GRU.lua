-- GRU (Cho et al. 2014): gates reset, update, new, in this order; reset acts on all that comes from the state.

---@class ampl.nn.GRU : ampl.nn.Recurrent
return require "ampl.nn.recurrent"("GRU", 3, 1, function(self, from_input, from_state, state)
  local n = self.hidden_size
  local function gate(x, k) return x:narrow(-1, (k - 1) * n + 1, n) end
  local reset = (gate(from_input, 1) + gate(from_state, 1)):sigmoid()
  local update = (gate(from_input, 2) + gate(from_state, 2)):sigmoid()
  local new = (gate(from_input, 3) + reset * gate(from_state, 3)):tanh()
  return {new + update * (state[1] - new)}
end)
