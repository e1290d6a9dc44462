-- gpt: GPT-2 (Radford et al. 2019) under its names: pre-norm blocks of causal attention and an MLP, tied output weight.
--
--   local model = ampl.models.gpt{layers = 4, d = 128, heads = 4, context = 128, vocab = 256}
--   local logits = model(ids)            -- ids (batch, time) from 1; logits (batch, time, vocab)

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local nn = require "ampl.nn"
local args = require "ampl.args"
local raise = require "ampl.raise"

local params = {
  {"layers", "integer", min = 1, max = args.MOST_LAYERS}, {"d", "integer", min = 1}, {"heads", "integer", min = 1},
  {"context", "integer", min = 1}, {"vocab", "integer", 256, min = 1},
}

-- GPT-2 keeps the weights of these layers as (in, out): y = x W + b.
local Projection = nn.Module:extend("Projection")

function Projection:init(n_in, n_out, std)
  self.weight = core.empty({n_in, n_out}, {requires_grad = true})
  self.bias = core.zeros({n_out}, {requires_grad = true})
  nn.init.normal_(self.weight, 0, std)
end

function Projection:forward(x)
  local shape = x.shape
  local n = shape[#shape]
  shape[#shape] = self.bias:numel()
  return core.addmm(self.bias, x:reshape(-1, n), self.weight):view(shape)
end

local Attention = nn.Module:extend("Attention")

function Attention:init(d, heads, std)
  self.heads = heads
  self.c_attn = Projection(d, 3 * d, 0.02)
  self.c_proj = Projection(d, d, std)
end

function Attention:forward(x)
  local b, t, d = table.unpack(x.shape)
  local qkv = self.c_attn(x):view(b, t, 3, self.heads, d // self.heads):permute(3, 1, 4, 2, 5)
  local y = F.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], {is_causal = true})
  return self.c_proj(y:transpose(2, 3):reshape(b, t, d))
end

local MLP = nn.Module:extend("MLP")

function MLP:init(d, std)
  self.c_fc = Projection(d, 4 * d, 0.02)
  self.c_proj = Projection(4 * d, d, std)
end

function MLP:forward(x)
  return self.c_proj(F.gelu(self.c_fc(x), {approximate = "tanh"}))
end

local Block = nn.Module:extend("Block")

function Block:init(d, heads, std)
  self.ln_1 = nn.LayerNorm(d)
  self.attn = Attention(d, heads, std)
  self.ln_2 = nn.LayerNorm(d)
  self.mlp = MLP(d, std)
end

function Block:forward(x)
  x = x + self.attn(self.ln_1(x))
  return x + self.mlp(self.ln_2(x))
end

local Transformer = nn.Module:extend("Transformer")

function Transformer:init(o)
  self.wte = nn.Embedding(o.vocab, o.d)
  self.wpe = nn.Embedding(o.context, o.d)
  nn.init.normal_(self.wte.weight, 0, 0.02)
  nn.init.normal_(self.wpe.weight, 0, 0.02)
  self.h = nn.ModuleList()
  -- What is added to the residual stream is smaller the more layers add to it.
  for _ = 1, o.layers do self.h:append(Block(o.d, o.heads, 0.02 / math.sqrt(2 * o.layers))) end
  self.ln_f = nn.LayerNorm(o.d)
end

function Transformer:forward(ids)
  local t = ids.shape[2]
  local x = self.wte(ids) + self.wpe.weight:narrow(1, 1, t)
  for _, block in ipairs(self.h) do x = block(x) end
  return self.ln_f(x)
end

---@class ampl.models.gpt : ampl.nn.Module
local gpt = nn.Module:define("gpt", params)

---@param options {layers: integer, d: integer, heads: integer, context: integer, vocab: integer}
function gpt:init(...)
  local o = self:read(...)
  if o.d % o.heads ~= 0 then raise("EVALUE", "gpt", ("d %d must be divisible by heads %d"):format(o.d, o.heads)) end
  self.context = o.context
  self.transformer = Transformer(o)
  self.lm_head = nn.Linear(o.d, o.vocab, {bias = false})
  self.lm_head.weight = self.transformer.wte.weight
end

---@param ids ampl.Tensor (batch, time), tokens from 1
---@return ampl.Tensor logits (batch, time, vocab)
function gpt:forward(ids)
  args.tensor("gpt", "ids", ids)
  if ids:dim() ~= 2 or ids.shape[2] > self.context then
    raise("ESHAPE", "gpt", ("ids must be (batch, time of at most %d), not {%s}"):format(
      self.context, table.concat(ids.shape, ", ")))
  end
  return self.lm_head(self.transformer(ids))
end

return gpt
