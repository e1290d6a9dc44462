-- Layers that are an op and its options: activations, losses, pooling.  One row says all there is: the op, and names
-- and kinds of its options in PyTorch's order.  What is not given has the op's default.

local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"

local pool = {{"kernel_size", "size"}, {"stride", "size?"}, {"padding", "size?"}}
local max_pool = {pool[1], pool[2], pool[3], {"dilation", "size?"}, {"return_indices", "boolean", false},
                  {"ceil_mode", "boolean", false}}
local avg_pool = {pool[1], pool[2], pool[3], {"ceil_mode", "boolean", false}, {"count_include_pad", "boolean", true}}
local avg_pool2d = {pool[1], pool[2], pool[3], avg_pool[4], avg_pool[5], {"divisor_override", "integer?"}}
local inplace = {"inplace", "boolean", false}
local reduction = {"reduction", "string", "mean"}
local weight = {"weight", "tensor?"}

local rows = {
  ReLU        = {"relu", inplace},
  ReLU6       = {"relu6", inplace},
  LeakyReLU   = {"leaky_relu", {"negative_slope", "number?"}, inplace},
  ELU         = {"elu", {"alpha", "number?"}, inplace},
  SELU        = {"selu", inplace},
  CELU        = {"celu", {"alpha", "number?"}, inplace},
  GELU        = {"gelu", {"approximate", "string", "none", choices = {"none", "tanh"}}},
  SiLU        = {"silu", inplace},
  Mish        = {"mish", inplace},
  Hardtanh    = {"hardtanh", {"min_val", "number?"}, {"max_val", "number?"}, inplace},
  Hardswish   = {"hardswish", inplace},
  Hardsigmoid = {"hardsigmoid", inplace},
  Softplus    = {"softplus", {"beta", "number?"}, {"threshold", "number?"}},
  Softsign    = {"softsign"},
  Sigmoid     = {"sigmoid"},
  Tanh        = {"tanh"},
  LogSigmoid  = {"logsigmoid"},
  Softmax     = {"softmax", {"dim", "integer"}},
  LogSoftmax  = {"log_softmax", {"dim", "integer"}},
  GLU         = {"glu", {"dim", "integer?"}},

  MaxPool1d         = {"max_pool1d", table.unpack(max_pool)},
  MaxPool2d         = {"max_pool2d", table.unpack(max_pool)},
  AvgPool1d         = {"avg_pool1d", table.unpack(avg_pool)},
  AvgPool2d         = {"avg_pool2d", table.unpack(avg_pool2d)},
  AdaptiveAvgPool1d = {"adaptive_avg_pool1d", {"output_size", "size"}},
  AdaptiveAvgPool2d = {"adaptive_avg_pool2d", {"output_size", "size"}},
  AdaptiveMaxPool2d = {"adaptive_max_pool2d", {"output_size", "size"}, {"return_indices", "boolean", false}},
  PixelShuffle      = {"pixel_shuffle", {"upscale_factor", "integer"}},
  Upsample          = {"interpolate", {"size", "size?"}, {"scale_factor", "numbers?"}, {"mode", "string", "nearest"},
                       {"align_corners", "boolean?"}},

  CrossEntropyLoss    = {"cross_entropy", weight, {"ignore_index", "integer?"}, reduction,
                         {"label_smoothing", "number?"}},
  NLLLoss             = {"nll_loss", weight, {"ignore_index", "integer?"}, reduction},
  BCELoss             = {"binary_cross_entropy", weight, reduction},
  BCEWithLogitsLoss   = {"binary_cross_entropy_with_logits", weight, reduction, {"pos_weight", "tensor?"}},
  MSELoss             = {"mse_loss", reduction},
  L1Loss              = {"l1_loss", reduction},
  SmoothL1Loss        = {"smooth_l1_loss", reduction, {"beta", "number?"}},
  HuberLoss           = {"huber_loss", reduction, {"delta", "number?"}},
  KLDivLoss           = {"kl_div", reduction, {"log_target", "boolean?"}},
  CosineSimilarity    = {"cosine_similarity", {"dim", "integer", 2}, {"eps", "number?"}},
  CosineEmbeddingLoss = {"cosine_embedding_loss", {"margin", "number?"}, reduction},
  HingeEmbeddingLoss  = {"hinge_embedding_loss", {"margin", "number?"}, reduction},
  MarginRankingLoss   = {"margin_ranking_loss", {"margin", "number?"}, reduction},
  TripletMarginLoss   = {"triplet_margin_loss", {"margin", "number?"}, {"p", "number?"}, {"eps", "number?"},
                         {"swap", "boolean?"}, reduction},
  SoftMarginLoss      = {"soft_margin_loss", reduction},
  MultiMarginLoss     = {"multi_margin_loss", {"p", "integer?"}, {"margin", "number?"}, weight, reduction},
  PoissonNLLLoss      = {"poisson_nll_loss", {"log_input", "boolean?"}, {"full", "boolean?"}, {"eps", "number?"},
                         reduction},
  GaussianNLLLoss     = {"gaussian_nll_loss", {"full", "boolean?"}, {"eps", "number?"}, reduction},
  CTCLoss             = {"ctc_loss", {"blank", "integer?"}, reduction, {"zero_infinity", "boolean?"}},
}

-- The inputs of a layer with options behind them: call(a, b, ..., options).
local function with(call, options, ...)
  local list, n = {...}, select("#", ...)
  list[n + 1] = options
  return call(table.unpack(list, 1, n + 1))
end

local function init(self, ...)
  local o = self:options(...)
  rawset(self, "_call", nil)
  local call, tensors = {}, {}
  for name, value in pairs(o) do
    if type(value) == "userdata" then
      self:register_buffer(name, value, {persistent = false})
      tensors[#tensors + 1] = name
    elseif name ~= "inplace" then
      self[name], call[name] = value, value
    end
  end
  rawset(self, "_call", next(call) and call or nil)
  rawset(self, "_tensors", #tensors > 0 and tensors or nil)
  rawset(self, "_inplace", o.inplace)
end

local function make(name, row)
  local op = row[1]
  local call = F[op]
  if not call then return nil end
  local class = Module:define(name, {table.unpack(row, 2)})
  class.init = init
  if #row == 1 then
    function class:forward(...) return call(...) end
    return class
  end
  function class:forward(...)
    local options = rawget(self, "_call")
    if rawget(self, "_tensors") then
      options = {}
      for k, v in pairs(rawget(self, "_call") or {}) do options[k] = v end
      for _, k in ipairs(self._tensors) do options[k] = self[k] end
    end
    if rawget(self, "_inplace") then
      local x = ...
      return x[op .. "_"](x, options)
    end
    if not options then return call(...) end
    return with(call, options, ...)
  end
  return class
end

local functions = {}

---The names of all these layers.
---@return string[]
function functions.names()
  local out = {}
  for name in pairs(rows) do out[#out + 1] = name end
  table.sort(out)
  return out
end

return setmetatable(functions, {
  __index = function(t, name)
    if not rows[name] then return nil end
    local class = make(name, rows[name])
    rawset(t, name, class)
    return class
  end,
})
