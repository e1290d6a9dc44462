-- InstanceNorm2d: normalises each channel of each image; input (n, c, height, width) or (c, height, width).

local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local channel_state = require "ampl.nn.channel_state"
local args = require "ampl.args"
local raise = require "ampl.raise"

---@class ampl.nn.InstanceNorm2d : ampl.nn.Module
---@field weight ampl.Tensor?
---@field bias ampl.Tensor?
---@field running_mean ampl.Tensor?
---@field running_var ampl.Tensor?
local InstanceNorm2d = Module:define("InstanceNorm2d", {
  {"num_features", "integer", min = 0}, {"eps", "number", 1e-5, min = 0}, {"momentum", "number", 0.1, min = 0, max = 1},
  {"affine", "boolean", false}, {"track_running_stats", "boolean", false}, {"device", "device?"}, {"dtype", "dtype?"},
})

function InstanceNorm2d:init(...)
  channel_state(self, self:options(...))
end

function InstanceNorm2d:forward(x)
  local n = args.tensor(self.name, "input", x):dim()
  if n ~= 3 and n ~= 4 then raise("ESHAPE", self.name, ("the input must have 3 or 4 dimensions, not %d"):format(n)) end
  local batch = n == 3 and x:unsqueeze(1) or x
  local of_input = self.training or not self.running_mean
  local y = F.instance_norm(batch, self.running_mean, self.running_var, self.weight, self.bias, of_input, self.momentum,
                            self.eps)
  return n == 3 and y:squeeze(1) or y
end

return InstanceNorm2d
