-- BatchNorm1d: normalises each channel over the batch; input (n, c) or (n, c, length).

---@class ampl.nn.BatchNorm1d : ampl.nn.BatchNorm
return require "ampl.nn.batch_norm"("BatchNorm1d", {2, 3})
