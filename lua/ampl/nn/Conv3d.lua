-- Conv3d: convolution over 3 dimensions.

---@class ampl.nn.Conv3d : ampl.nn.Module
---@field weight ampl.Tensor (out_channels, in_channels / groups, kernel)
---@field bias ampl.Tensor?
return require "ampl.nn.convolution".plain("Conv3d", "conv3d", 3)
