-- TransformerDecoderLayer: self-attention, attention to the encoder's memory, a feed-forward part.  True in a mask
-- means: do not look.

local args = require "ampl.args"
local masks = require "ampl.nn.masks"
local transformer = require "ampl.nn.transformer"

---@class ampl.nn.TransformerDecoderLayer : ampl.nn.TransformerLayer
local TransformerDecoderLayer = transformer.layer("TransformerDecoderLayer", {"self_attn", "multihead_attn"})

local call = args.signature("TransformerDecoderLayer", {
  {"tgt_mask", "tensor?"}, {"memory_mask", "tensor?"}, {"tgt_key_padding_mask", "tensor?"},
  {"memory_key_padding_mask", "tensor?"}, {"tgt_is_causal", "boolean", false}, {"memory_is_causal", "boolean", false},
})

local tgt_names = {attn_mask = "tgt_mask", key_padding_mask = "tgt_key_padding_mask", is_causal = "tgt_is_causal"}
local memory_names = {attn_mask = "memory_mask", key_padding_mask = "memory_key_padding_mask",
                      is_causal = "memory_is_causal"}

---Options: tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal.
---@param x ampl.Tensor
---@param memory ampl.Tensor
---@return ampl.Tensor
function TransformerDecoderLayer:forward(x, memory, ...)
  local o = call(...)
  masks.check_inputs(self.name, "tgt", x, "memory", memory)
  masks.check(self.name, self.self_attn, x, x, {attn_mask = o.tgt_mask, key_padding_mask = o.tgt_key_padding_mask,
                                                is_causal = o.tgt_is_causal}, tgt_names)
  masks.check(self.name, self.multihead_attn, x, memory, {
    attn_mask = o.memory_mask, key_padding_mask = o.memory_key_padding_mask, is_causal = o.memory_is_causal,
  }, memory_names)
  x = self:residual(1, x, function(h)
    return (self.self_attn(h, h, h, {attn_mask = o.tgt_mask, key_padding_mask = o.tgt_key_padding_mask,
                                     is_causal = o.tgt_is_causal, need_weights = false}))
  end)
  x = self:residual(2, x, function(h)
    return (self.multihead_attn(h, memory, memory, {attn_mask = o.memory_mask,
                                                    key_padding_mask = o.memory_key_padding_mask,
                                                    is_causal = o.memory_is_causal, need_weights = false}))
  end)
  return self:feed_forward(3, x)
end

return TransformerDecoderLayer
