-- BatchNorm3d: normalises each channel over the batch and the volume; input (n, c, depth, height, width).

---@class ampl.nn.BatchNorm3d : ampl.nn.BatchNorm
return require "ampl.nn.batch_norm"("BatchNorm3d", {5, 5})
