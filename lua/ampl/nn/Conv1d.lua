-- Conv1d: convolution over 1 dimension.

---@class ampl.nn.Conv1d : ampl.nn.Module
---@field weight ampl.Tensor (out_channels, in_channels / groups, kernel)
---@field bias ampl.Tensor?
return require "ampl.nn.convolution".plain("Conv1d", "conv1d", 1)
