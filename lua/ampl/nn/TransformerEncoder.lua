-- TransformerEncoder: copies of an encoder layer, one after another.

local Module = require "ampl.nn.Module"
local ModuleList = require "ampl.nn.ModuleList"
local args = require "ampl.args"
local masks = require "ampl.nn.masks"

---@class ampl.nn.TransformerEncoder : ampl.nn.Module
---@field layers ampl.nn.ModuleList
local TransformerEncoder = Module:define("TransformerEncoder", {
  {"encoder_layer", "module"}, {"num_layers", "integer", min = 1, max = args.MOST_LAYERS}, {"norm", "module?"},
})

---The layer is copied, weights too.
function TransformerEncoder:init(...)
  local o = self:read(...)
  self.layers = ModuleList()
  for _ = 1, o.num_layers do self.layers:append(o.encoder_layer:clone()) end
  self.norm = o.norm
end

local call = args.signature("TransformerEncoder", {
  {"mask", "tensor?"}, {"src_key_padding_mask", "tensor?"}, {"is_causal", "boolean", false},
})

local names = {attn_mask = "mask", key_padding_mask = "src_key_padding_mask"}

---Options: mask, src_key_padding_mask, is_causal.
---@param x ampl.Tensor
---@return ampl.Tensor
function TransformerEncoder:forward(x, ...)
  local o = call(...)
  masks.check_inputs(self.name, "src", x)
  local attention = self.layers[1].self_attn
  if attention then
    masks.check(self.name, attention, x, x, {attn_mask = o.mask, key_padding_mask = o.src_key_padding_mask,
                                             is_causal = o.is_causal}, names)
  end
  for _, layer in ipairs(self.layers) do
    x = layer(x, {src_mask = o.mask, src_key_padding_mask = o.src_key_padding_mask, is_causal = o.is_causal})
  end
  return self.norm and self.norm(x) or x
end

return TransformerEncoder
