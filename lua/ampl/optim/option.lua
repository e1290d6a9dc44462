-- The options that optimisers share, and what must hold of each.

local known = {
  lr                        = {"number", min = 0},
  eps                       = {"number", min = 0},
  weight_decay              = {"number", min = 0},
  momentum                  = {"number", min = 0},
  alpha                     = {"number", min = 0},
  rho                       = {"number", min = 0, max = 1},
  lr_decay                  = {"number", min = 0},
  momentum_decay            = {"number", min = 0},
  initial_accumulator_value = {"number", min = 0},
  betas                     = {"number_list", length = 2, min = 0, below = 1},
}

---The parameter `name` with its default, as ampl.args has it.
---@param name string
---@param default any
---@return table
return function(name, default)
  local out = {name, known[name][1], default}
  for key, value in pairs(known[name]) do
    if key ~= 1 then out[key] = value end
  end
  return out
end
