-- What the encoder and decoder layers share: arguments, the feed-forward part, norms before or after.

local Dropout = require "ampl.nn.Dropout"
local F = require "ampl.nn.functional"
local LayerNorm = require "ampl.nn.LayerNorm"
local Linear = require "ampl.nn.Linear"
local Module = require "ampl.nn.Module"
local MultiheadAttention = require "ampl.nn.MultiheadAttention"
local args = require "ampl.args"
local raise = require "ampl.raise"

local transformer = {}

local params = {
  {"d_model", "integer", min = 1}, {"nhead", "integer", min = 1}, {"dim_feedforward", "integer", 2048, min = 0},
  {"dropout", "number", 0.1, min = 0, max = 1}, {"activation", "activation", "relu"},
  {"layer_norm_eps", "number", 1e-5, min = 0}, {"batch_first", "boolean", false}, {"norm_first", "boolean", false},
  {"bias", "boolean", true}, {"device", "device?"}, {"dtype", "dtype?"},
}

---A class of layers with the attention parts `attentions` (names) and one norm and dropout more than these.
---@param name string
---@param attentions string[]
---@return ampl.nn.Module
function transformer.layer(name, attentions)
  ---@class ampl.nn.TransformerLayer : ampl.nn.Module
  local class = Module:define(name, params)

  function class:init(...)
    local o = self:options(...)
    if o.d_model % o.nhead ~= 0 then
      raise("EVALUE", name, ("d_model %d must be divisible by nhead %d"):format(o.d_model, o.nhead))
    end
    self.norm_first = o.norm_first
    self.activation = type(o.activation) == "function" and o.activation or F[o.activation]
    if type(self.activation) ~= "function" then
      raise("EARG", name, "activation must be a function or the name of one, not " .. args.shown(o.activation))
    end
    local where = {dtype = o.dtype, device = o.device}
    for _, attention in ipairs(attentions) do
      self[attention] = MultiheadAttention(o.d_model, o.nhead, {dropout = o.dropout, bias = o.bias,
                                           batch_first = o.batch_first, dtype = o.dtype, device = o.device})
    end
    self.linear1 = Linear(o.d_model, o.dim_feedforward, {bias = o.bias, dtype = where.dtype, device = where.device})
    self.dropout = Dropout(o.dropout)
    self.linear2 = Linear(o.dim_feedforward, o.d_model, {bias = o.bias, dtype = where.dtype, device = where.device})
    for i = 1, #attentions + 1 do
      self["norm" .. i] = LayerNorm(o.d_model, {eps = o.layer_norm_eps, bias = o.bias, dtype = where.dtype,
                                                device = where.device})
      self["dropout" .. i] = Dropout(o.dropout)
    end
  end

  ---x plus what part number i makes of it, with the norm before or after.
  ---@protected
  function class:residual(i, x, part)
    local norm, drop = self["norm" .. i], self["dropout" .. i]
    if self.norm_first then return x + drop(part(norm(x))) end
    return norm(x + drop(part(x)))
  end

  ---The feed-forward part, residual number i.
  ---@protected
  function class:feed_forward(i, x)
    return self:residual(i, x, function(h) return self.linear2(self.dropout(self.activation(self.linear1(h)))) end)
  end

  return class
end

return transformer
