-- What batch and instance norm keep for each channel: weight and bias, and running statistics.

local core = require "ampl.core"

---@param self ampl.nn.Module
---@param o table num_features, eps, momentum, affine, track_running_stats, dtype, device
return function(self, o)
  local n, how = {o.num_features}, {dtype = o.dtype, device = o.device}
  self.num_features, self.eps, self.momentum = o.num_features, o.eps, o.momentum
  if o.affine then
    self.weight = core.ones(n, how):requires_grad_(true)
    self.bias = core.zeros(n, how):requires_grad_(true)
  end
  if o.track_running_stats then
    self:register_buffer("running_mean", core.zeros(n, how))
    self:register_buffer("running_var", core.ones(n, how))
    -- Files from before PyTorch 0.4.1 do not have it.
    self:register_buffer("num_batches_tracked", core.zeros({}, {dtype = "i64", device = o.device}), {optional = true})
  end
end
