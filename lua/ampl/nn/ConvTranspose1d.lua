-- ConvTranspose1d: the gradient of a convolution with regard to its input, as a layer; it makes images larger.

---@class ampl.nn.ConvTranspose1d : ampl.nn.Module
---@field weight ampl.Tensor (in_channels, out_channels / groups, kernel)
---@field bias ampl.Tensor?
return require "ampl.nn.convolution".transposed("ConvTranspose1d", "conv_transpose1d", 1)
