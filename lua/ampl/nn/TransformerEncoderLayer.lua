-- TransformerEncoderLayer: self-attention and a feed-forward part.  True in a mask means: do not look.

local args = require "ampl.args"
local masks = require "ampl.nn.masks"
local transformer = require "ampl.nn.transformer"

---@class ampl.nn.TransformerEncoderLayer : ampl.nn.TransformerLayer
local TransformerEncoderLayer = transformer.layer("TransformerEncoderLayer", {"self_attn"})

local call = args.signature("TransformerEncoderLayer", {
  {"src_mask", "tensor?"}, {"src_key_padding_mask", "tensor?"}, {"is_causal", "boolean", false},
})

local names = {attn_mask = "src_mask", key_padding_mask = "src_key_padding_mask"}

---Options: src_mask, src_key_padding_mask, is_causal.
---@param x ampl.Tensor
---@return ampl.Tensor
function TransformerEncoderLayer:forward(x, ...)
  local o = call(...)
  masks.check_inputs(self.name, "src", x)
  masks.check(self.name, self.self_attn, x, x, {attn_mask = o.src_mask, key_padding_mask = o.src_key_padding_mask,
                                                is_causal = o.is_causal}, names)
  x = self:residual(1, x, function(h)
    return (self.self_attn(h, h, h, {attn_mask = o.src_mask, key_padding_mask = o.src_key_padding_mask,
                                     is_causal = o.is_causal, need_weights = false}))
  end)
  return self:feed_forward(2, x)
end

return TransformerEncoderLayer
