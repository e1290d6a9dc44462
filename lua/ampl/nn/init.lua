-- ampl.nn: layers, losses, first values, helpers.  Each loads at its first use.

return require "ampl.lazy"("ampl.nn", {
  "Module", "Parameter", "functional", "utils", "Linear", "Identity", "Sequential", "ModuleList", "Conv1d",
  "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm",
  "RMSNorm", "GroupNorm", "Embedding", "Dropout", "Dropout2d", "InstanceNorm2d", "Flatten", "Unflatten",
  "PReLU", "RNN", "LSTM", "GRU", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer",
  "TransformerEncoder",
}, {
  load = function(name)
    if name == "init" then return require "ampl.nn.initializers" end    -- ampl/nn/init.lua is this file
    return require "ampl.nn.functions"[name]
  end,
  names = function()
    local names = require "ampl.nn.functions".names()
    names[#names + 1] = "init"
    return names
  end,
})
