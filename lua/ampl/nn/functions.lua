-- Layers that are an op and its options: activations, losses, pooling.  One row says all there is: the op, and names
-- and kinds of its options in PyTorch's order.  What is not given has the op's default.

local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local raise = require "ampl.raise"

-- A pooling layer over n dimensions.
local function pool(n)
  return {"kernel_size", "size", min = 1, length = n}, {"stride", "size?", min = 1, length = n},
         {"padding", "size?", min = 0, length = n}
end
local function max_pool(op, n)
  local kernel, stride, padding = pool(n)
  return {op, kernel, stride, padding, {"dilation", "size?", min = 1, length = n}, {"return_indices", "boolean", false},
          {"ceil_mode", "boolean", false}}
end
local function avg_pool(op, n, ...)
  local kernel, stride, padding = pool(n)
  return {op, kernel, stride, padding, {"ceil_mode", "boolean", false}, {"count_include_pad", "boolean", true}, ...}
end
local function output_size(n) return {"output_size", "size", min = 0, length = n} end

local inplace = {"inplace", "boolean", false}
local reduction = {"reduction", "string", "mean", choices = {"none", "mean", "sum"}}
local weight = {"weight", "tensor?"}
local eps = {"eps", "number?", min = 0}
local margin = {"margin", "number?"}

local function check_hardtanh(name, o)
  local low, high = o.min_val or -1, o.max_val or 1
  if low >= high or low ~= low or high ~= high then
    raise("EVALUE", name, ("max_val must be above min_val, but they are %.14g and %.14g"):format(high, low))
  end
end

-- check = function(name, options): raises for options that do not go together
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
  Hardtanh    = {"hardtanh", {"min_val", "number?"}, {"max_val", "number?"}, inplace, check = check_hardtanh},
  Hardswish   = {"hardswish", inplace},
  Hardsigmoid = {"hardsigmoid", inplace},
  Softplus    = {"softplus", {"beta", "number?"}, {"threshold", "number?"}},
  Softsign    = {"softsign"},
  Sigmoid     = {"sigmoid"},
  Tanh        = {"tanh"},
  LogSigmoid  = {"logsigmoid"},
  Softmax     = {"softmax", {"dim", "dim"}},
  LogSoftmax  = {"log_softmax", {"dim", "dim"}},
  GLU         = {"glu", {"dim", "dim?"}},

  MaxPool1d         = max_pool("max_pool1d", 1),
  MaxPool2d         = max_pool("max_pool2d", 2),
  AvgPool1d         = avg_pool("avg_pool1d", 1),
  AvgPool2d         = avg_pool("avg_pool2d", 2, {"divisor_override", "integer?", min = 1}),
  AdaptiveAvgPool1d = {"adaptive_avg_pool1d", output_size(1)},
  AdaptiveAvgPool2d = {"adaptive_avg_pool2d", output_size(2)},
  AdaptiveMaxPool2d = {"adaptive_max_pool2d", output_size(2), {"return_indices", "boolean", false}},
  PixelShuffle      = {"pixel_shuffle", {"upscale_factor", "integer", min = 1}},
  Upsample          = {"interpolate", {"size", "size?", min = 1}, {"scale_factor", "numbers?", above = 0},
                       {"mode", "string", "nearest",
                        choices = {"nearest", "linear", "bilinear", "bicubic", "trilinear"}},
                       {"align_corners", "boolean?"}},

  CrossEntropyLoss    = {"cross_entropy", weight, {"ignore_index", "integer?"}, reduction,
                         {"label_smoothing", "number?", min = 0, max = 1}},
  NLLLoss             = {"nll_loss", weight, {"ignore_index", "integer?"}, reduction},
  BCELoss             = {"binary_cross_entropy", weight, reduction},
  BCEWithLogitsLoss   = {"binary_cross_entropy_with_logits", weight, reduction, {"pos_weight", "tensor?"}},
  MSELoss             = {"mse_loss", reduction},
  L1Loss              = {"l1_loss", reduction},
  SmoothL1Loss        = {"smooth_l1_loss", reduction, {"beta", "number?", min = 0}},
  HuberLoss           = {"huber_loss", reduction, {"delta", "number?", above = 0}},
  KLDivLoss           = {"kl_div", {"reduction", "string", "mean", choices = {"none", "mean", "sum", "batchmean"}},
                         {"log_target", "boolean?"}},
  CosineSimilarity    = {"cosine_similarity", {"dim", "dim", 2}, eps},
  CosineEmbeddingLoss = {"cosine_embedding_loss", margin, reduction},
  HingeEmbeddingLoss  = {"hinge_embedding_loss", margin, reduction},
  MarginRankingLoss   = {"margin_ranking_loss", margin, reduction},
  TripletMarginLoss   = {"triplet_margin_loss", {"margin", "number?", above = 0}, {"p", "number?"}, eps,
                         {"swap", "boolean?"}, reduction},
  SoftMarginLoss      = {"soft_margin_loss", reduction},
  MultiMarginLoss     = {"multi_margin_loss", {"p", "integer?", min = 1, max = 2}, margin, weight, reduction},
  PoissonNLLLoss      = {"poisson_nll_loss", {"log_input", "boolean?"}, {"full", "boolean?"}, eps, reduction},
  GaussianNLLLoss     = {"gaussian_nll_loss", {"full", "boolean?"}, {"eps", "number?", above = 0}, reduction},
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
  if self.check then self.check(self.name, o) end
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
  class.init, class.op, class.check = init, op, row.check
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
    if rawget(self, "_inplace") then return with(F[op .. "_"], options, ...) end
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
