-- ConvTranspose2d: the gradient of a convolution with regard to its input, as a layer; it makes images larger.

---@class ampl.nn.ConvTranspose2d : ampl.nn.Module
---@field weight ampl.Tensor (in_channels, out_channels / groups, kernel)
---@field bias ampl.Tensor?
return require "ampl.nn.convolution".transposed("ConvTranspose2d", "conv_transpose2d", 2)
