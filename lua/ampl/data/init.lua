-- ampl.data: data sets, loaders, and readers of files.
--
-- A data set is a table with `__len` and `get(i)`, which returns x, y.  One that can make a whole batch at once has
-- `get_batch(positions)` too, which gets a list of positions as an i64 tensor and returns the batch's tensors.

local lazy = require "ampl.lazy"

return lazy("ampl.data", {"DataLoader", "TensorDataset", "csv", "idx", "npy", "text"})
