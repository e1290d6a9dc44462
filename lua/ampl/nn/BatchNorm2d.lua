-- BatchNorm2d: normalises each channel over the batch and the image; input (n, c, height, width).

---@class ampl.nn.BatchNorm2d : ampl.nn.BatchNorm
return require "ampl.nn.batch_norm"("BatchNorm2d", {4, 4})
