-- Conv2d: convolution over 2 dimensions.

---@class ampl.nn.Conv2d : ampl.nn.Module
---@field weight ampl.Tensor (out_channels, in_channels / groups, kernel)
---@field bias ampl.Tensor?
return require "ampl.nn.convolution".plain("Conv2d", "conv2d", 2)
