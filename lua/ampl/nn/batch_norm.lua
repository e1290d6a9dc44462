-- What the batch normalisation layers share.

local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local channel_state = require "ampl.nn.channel_state"
local init = require "ampl.nn.initializers"
local args = require "ampl.args"
local raise = require "ampl.raise"

local function forward(self, x)
  local n = args.tensor(self.name, "input", x):dim()
  if n < self.ranks[1] or n > self.ranks[2] then
    raise("ESHAPE", self.name, ("the input must have %s dimensions, not %d"):format(
      self.ranks[1] == self.ranks[2] and self.ranks[1] or self.ranks[1] .. " or " .. self.ranks[2], n))
  end
  local momentum = self.momentum or 0.0
  if self.training and self.running_mean then
    self.num_batches_tracked:add_(1)
    if not self.momentum then momentum = 1 / self.num_batches_tracked:item() end        -- the plain mean so far
  end
  local of_batch = self.training or not self.running_mean
  return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, of_batch, momentum, self.eps)
end

---@param name string
---@param ranks integer[] the fewest and the most dimensions of the input
---@return ampl.nn.Module
return function(name, ranks)
  ---@class ampl.nn.BatchNorm : ampl.nn.Module
  ---@field weight ampl.Tensor?
  ---@field bias ampl.Tensor?
  ---@field running_mean ampl.Tensor?
  ---@field running_var ampl.Tensor?
  ---@field num_batches_tracked ampl.Tensor?
  local class = Module:define(name, {
    {"num_features", "integer", min = 0}, {"eps", "number", 1e-5, min = 0},
    {"momentum", "number?", 0.1, min = 0, max = 1}, {"affine", "boolean", true},
    {"track_running_stats", "boolean", true}, {"device", "device?"}, {"dtype", "dtype?"},
  })
  class.ranks = ranks

  ---`momentum = false` averages over all batches alike.
  function class:init(...)
    channel_state(self, self:options(...))
  end

  ---Forgets what was seen.
  function class:reset_running_stats()
    if not self.running_mean then return end
    self.running_mean:zero_()
    self.running_var:fill_(1)
    self.num_batches_tracked:zero_()
  end

  function class:reset_parameters()
    self:reset_running_stats()
    if self.weight then
      init.ones_(self.weight)
      init.zeros_(self.bias)
    end
  end

  class.forward = forward
  return class
end
