-- What RNN, LSTM and GRU share: parameters and their names, layers, directions, layouts.  Each adds its cell.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local args = require "ampl.args"
local init = require "ampl.nn.initializers"
local raise = require "ampl.raise"

-- The parameters of one direction of one layer, in PyTorch's order.
local function names(layer, reverse)
  local ending = ("_l%d%s"):format(layer - 1, reverse and "_reverse" or "")
  return {"weight_ih" .. ending, "weight_hh" .. ending, "bias_ih" .. ending, "bias_hh" .. ending}
end

local function init_layer(self, o, gates)
  self.input_size, self.hidden_size, self.num_layers = o.input_size, o.hidden_size, o.num_layers
  self.bias, self.batch_first, self.bidirectional, self.dropout = o.bias, o.batch_first, o.bidirectional, o.dropout
  self._directions = o.bidirectional and 2 or 1
  local how = {dtype = o.dtype, device = o.device, requires_grad = true}
  local h = o.hidden_size
  for layer = 1, o.num_layers do
    local inputs = layer == 1 and o.input_size or h * self._directions
    for direction = 1, self._directions do
      local name = names(layer, direction == 2)
      self[name[1]] = core.empty({gates * h, inputs}, how)
      self[name[2]] = core.empty({gates * h, h}, how)
      if o.bias then
        self[name[3]] = core.empty({gates * h}, how)
        self[name[4]] = core.empty({gates * h}, how)
      end
    end
  end
  self:reset_parameters()
end

-- One direction of one layer over x (time, batch, inputs): outputs and the last state.
local function run(self, x, state, layer, reverse)
  local name = names(layer, reverse)
  local from_input = F.linear(x, self[name[1]], self[name[3]]):unbind(1)       -- all times at once
  local weight, bias = self[name[2]], self[name[4]]
  local n, outputs = #from_input, {}
  for k, part in ipairs(state) do                       -- in an autocast region the products have its low dtype
    state[k] = n > 0 and part:to(from_input[1].dtype) or part
  end
  for i = 1, n do
    local t = reverse and n + 1 - i or i
    state = self:cell(from_input[t], F.linear(state[1], weight, bias), state)
    outputs[t] = state[1]
  end
  return core.stack(outputs, 1), state
end

-- Raises unless the parts of a state have the shape that is asked for: (layers, batch, size), without the batch for an
-- input that has none.
local function check_state(self, parts, shape, plain)
  shape = plain and {shape[1], shape[3]} or shape
  for i, part in ipairs(parts) do
    local name = #parts == 1 and "the state" or ("entry %d of the state"):format(i)
    local got = args.tensor(self.name, name, part).shape
    if table.concat(got, ", ") ~= table.concat(shape, ", ") then
      raise("ESHAPE", self.name, ("%s must be {%s}, not {%s}"):format(name, table.concat(shape, ", "),
                                                                     table.concat(got, ", ")))
    end
  end
end

-- x and the parts of the state with batch second; the first state is 0.
local function prepared(self, x, parts)
  local rank, given = x:dim(), x.shape
  if rank ~= 2 and rank ~= 3 or x.shape[rank] ~= self.input_size then
    raise("ESHAPE", self.name, ("the input must be (%s, %d) or (length, %d), not {%s}"):format(
      self.batch_first and "batch, length" or "length, batch", self.input_size, self.input_size,
      table.concat(x.shape, ", ")))
  end
  if rank == 2 then
    x = x:unsqueeze(2)
  elseif self.batch_first then
    x = x:transpose(1, 2)
  end
  if x.shape[1] == 0 then
    raise("ESHAPE", self.name, ("the length of the sequences must be at least 1, the input is {%s}"):format(
      table.concat(given, ", ")))
  end
  local shape = {self.num_layers * self._directions, x.shape[2], self.hidden_size}
  if not parts then
    parts = {}
    for i = 1, self.parts do parts[i] = core.zeros(shape, {dtype = x.dtype, device = x.device}) end
  else
    check_state(self, parts, shape, rank == 2)
    for i, part in ipairs(parts) do parts[i] = rank == 2 and part:unsqueeze(2) or part end
  end
  return x, parts
end

-- The outputs and the parts of the last state, one entry for each layer and direction.
local function forward(self, x, parts)
  local rank = args.tensor(self.name, "input", x):dim()
  x, parts = prepared(self, x, parts)
  local last = {}
  for k = 1, self.parts do last[k] = {} end
  for layer = 1, self.num_layers do
    if layer > 1 and self.dropout > 0 then x = F.dropout(x, self.dropout, self.training) end
    local outputs = {}
    for direction = 1, self._directions do
      local at, state = (layer - 1) * self._directions + direction, {}
      for k = 1, self.parts do state[k] = parts[k][at] end
      outputs[direction], state = run(self, x, state, layer, direction == 2)
      for k = 1, self.parts do last[k][at] = state[k] end
    end
    x = #outputs == 1 and outputs[1] or core.cat(outputs, -1)
  end
  for k = 1, self.parts do
    last[k] = core.stack(last[k], 1)
    if rank == 2 then last[k] = last[k]:squeeze(2) end
  end
  if rank == 2 then
    x = x:squeeze(2)
  elseif self.batch_first then
    x = x:transpose(1, 2)
  end
  return x, last
end

---Makes the class of a layer.
---@param name string
---@param gates integer rows of the weights, in hidden sizes
---@param parts integer tensors of a state: 1 (h) or 2 (h, c)
---@param cell fun(self, from_input, from_state, state): ampl.Tensor[] the next state
---@param more? table[] further parameters of the constructor
---@return ampl.nn.Module
return function(name, gates, parts, cell, more)
  local params = {
    {"input_size", "integer", min = 0}, {"hidden_size", "integer", min = 1},
    {"num_layers", "integer", 1, min = 1, max = args.MOST_LAYERS},
  }
  table.move(more or {}, 1, #(more or {}), #params + 1, params)
  table.move({
    {"bias", "boolean", true}, {"batch_first", "boolean", false}, {"dropout", "number", 0.0, min = 0, max = 1},
    {"bidirectional", "boolean", false}, {"device", "device?"}, {"dtype", "dtype?"},
  }, 1, 6, #params + 1, params)

  ---@class ampl.nn.Recurrent : ampl.nn.Module
  local class = Module:define(name, params)
  class.parts, class.cell = parts, cell

  function class:init(...)
    local o = self:options(...)
    self:configure(o)
    init_layer(self, o, gates)
  end

  function class:configure() end

  ---Draws the parameters anew, as PyTorch does.
  function class:reset_parameters()
    local bound = self.hidden_size > 0 and 1 / math.sqrt(self.hidden_size) or 0
    for _, p in ipairs(self:parameters()) do init.uniform_(p, -bound, bound) end
  end

  ---@param x ampl.Tensor (length, batch, inputs), (batch, length, inputs) with batch_first, or (length, inputs)
  ---@param state? ampl.Tensor|ampl.Tensor[] (layers * directions, batch, hidden); {h, c} of an LSTM
  ---@return ampl.Tensor output of the last layer at every time
  ---@return ampl.Tensor|ampl.Tensor[] state after the last time
  function class:forward(x, state)
    if state ~= nil and parts == 1 then state = {state} end
    if state ~= nil and (type(state) ~= "table" or #state ~= parts) then
      raise("EARG", name, "the state must be a table {h, c}, not " .. args.shown(state))
    end
    local y, last = forward(self, x, state and {table.unpack(state)})
    return y, parts == 1 and last[1] or last
  end

  return class
end
