-- MultiheadAttention (Vaswani et al. 2017).  True in a mask means: do not look; a float mask is added to the scores.  A
-- target that may look nowhere gets 0.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Linear = require "ampl.nn.Linear"
local Module = require "ampl.nn.Module"
local args = require "ampl.args"
local init = require "ampl.nn.initializers"
local masks = require "ampl.nn.masks"
local raise = require "ampl.raise"

---@class ampl.nn.MultiheadAttention : ampl.nn.Module
---@field in_proj_weight ampl.Tensor? (3 embed_dim, embed_dim): queries, keys, values
---@field in_proj_bias ampl.Tensor?
---@field out_proj ampl.nn.Linear
local MultiheadAttention = Module:define("MultiheadAttention", {
  {"embed_dim", "integer", min = 1}, {"num_heads", "integer", min = 1}, {"dropout", "number", 0.0, min = 0, max = 1},
  {"bias", "boolean", true}, {"add_bias_kv", "boolean", false}, {"add_zero_attn", "boolean", false},
  {"kdim", "integer?", min = 1}, {"vdim", "integer?", min = 1}, {"batch_first", "boolean", false},
  {"device", "device?"}, {"dtype", "dtype?"},
})

function MultiheadAttention:init(...)
  local o = self:options(...)
  local e = o.embed_dim
  if e % o.num_heads ~= 0 then
    raise("EVALUE", self.name, ("embed_dim %d must be divisible by num_heads %d"):format(e, o.num_heads))
  end
  self.embed_dim, self.num_heads, self.dropout, self.batch_first = e, o.num_heads, o.dropout, o.batch_first
  self.kdim, self.vdim, self.add_zero_attn = o.kdim or e, o.vdim or e, o.add_zero_attn
  local how = {dtype = o.dtype, device = o.device, requires_grad = true}
  if self.kdim == e and self.vdim == e then
    self.in_proj_weight = core.empty({3 * e, e}, how)
  else
    self.q_proj_weight = core.empty({e, e}, how)
    self.k_proj_weight = core.empty({e, self.kdim}, how)
    self.v_proj_weight = core.empty({e, self.vdim}, how)
  end
  if o.bias then self.in_proj_bias = core.empty({3 * e}, how) end
  self.out_proj = Linear(e, e, {bias = o.bias, dtype = o.dtype, device = o.device})
  if o.add_bias_kv then
    self.bias_k = core.empty({1, 1, e}, how)
    self.bias_v = core.empty({1, 1, e}, how)
  end
  self:reset_parameters()
end

---Draws the parameters anew, as PyTorch does.
function MultiheadAttention:reset_parameters()
  for _, name in ipairs({"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"}) do
    if self[name] then init.xavier_uniform_(self[name]) end
  end
  self.out_proj:reset_parameters()
  if self.in_proj_bias then
    init.zeros_(self.in_proj_bias)
    init.zeros_(self.out_proj.bias)
  end
  if self.bias_k then
    init.xavier_normal_(self.bias_k)
    init.xavier_normal_(self.bias_v)
  end
end

-- Projects one of query, key, value: part 1, 2 or 3.
local function project(self, x, part)
  local e, whole = self.embed_dim, self.in_proj_weight
  local first = (part - 1) * e + 1
  local weight = whole and whole:narrow(1, first, e) or self[("qkv"):sub(part, part) .. "_proj_weight"]
  return F.linear(x, weight, self.in_proj_bias and self.in_proj_bias:narrow(1, first, e))
end

-- Both masks as one, (batch or 1, heads or 1, targets or 1, sources); `extra` sources at the end may always be seen.
local function combined(self, o, dtype, batch, extra)
  local sum
  if o.attn_mask then
    sum = masks.additive(o.attn_mask, dtype)
    local shape = sum.shape
    sum = #shape == 3 and sum:view(batch, self.num_heads, shape[2], shape[3]) or sum:unsqueeze(1):unsqueeze(1)
  end
  if o.key_padding_mask then
    local padding = masks.additive(o.key_padding_mask, dtype)
    if padding:dim() == 1 then padding = padding:unsqueeze(1) end
    padding = padding:unsqueeze(2):unsqueeze(2)
    sum = sum and sum + padding or padding
  end
  if sum and extra > 0 then sum = F.pad(sum, {0, extra}) end
  return sum
end

local call = args.signature("MultiheadAttention", {
  {"key_padding_mask", "tensor?"}, {"need_weights", "boolean", true}, {"attn_mask", "tensor?"},
  {"average_attn_weights", "boolean", true}, {"is_causal", "boolean", false},
})

-- Appends the learned key and value, and zeros, to what may be looked at: (sources, batch, e).
local function extended(self, k, v)
  local extra, shape = 0, {1, k.shape[2], self.embed_dim}
  if self.bias_k then
    k, v, extra = core.cat({k, self.bias_k:expand(shape)}, 1), core.cat({v, self.bias_v:expand(shape)}, 1), 1
  end
  if self.add_zero_attn then
    local zeros = core.zeros(shape, {dtype = k.dtype, device = k.device})
    k, v, extra = core.cat({k, zeros}, 1), core.cat({v, zeros}, 1), extra + 1
  end
  return k, v, extra
end

local function attend(self, q, k, v, mask, o)
  local p = self.training and self.dropout or 0.0
  if not o.need_weights then
    return F.scaled_dot_product_attention(q, k, v, {attn_mask = mask, dropout_p = p})
  end
  local scores = (q / math.sqrt(self.embed_dim // self.num_heads)):matmul(k:transpose(-1, -2))
  local weights = F.dropout(masks.softmax(scores, mask), p, self.training)
  return weights:matmul(v), o.average_attn_weights and weights:mean(2) or weights
end

-- Raises unless query, key and value are of one rank and of the sizes of this layer.
local function check_inputs(self, query, key, value)
  local rank
  for _, part in ipairs({{"query", query, self.embed_dim}, {"key", key, self.kdim}, {"value", value, self.vdim}}) do
    local name, x, size = table.unpack(part, 1, 3)
    local shape = args.tensor(self.name, name, x).shape
    rank = rank or #shape
    if #shape ~= rank or (rank ~= 2 and rank ~= 3) or shape[rank] ~= size then
      raise("ESHAPE", self.name, ("%s must be (%s, %d)%s, not {%s}"):format(
        name, self.batch_first and "batch, length" or "length, batch", size,
        rank == 2 and " or (length, size) as the query is" or " or (length, size) without a batch",
        table.concat(shape, ", ")))
    end
  end
end

---query (targets, batch, embed_dim), key and value (sources, batch, kdim / vdim); batch first with batch_first; without
---batch when query has 2 dimensions.  Options: key_padding_mask (batch, sources), attn_mask (targets, sources) or
---(batch * heads, targets, sources), need_weights, average_attn_weights, is_causal (a hint beside attn_mask).
---@param query ampl.Tensor
---@param key ampl.Tensor
---@param value ampl.Tensor
---@return ampl.Tensor output
---@return ampl.Tensor? weights
function MultiheadAttention:forward(query, key, value, ...)
  local o = call(...)
  check_inputs(self, query, key, value)
  masks.check(self.name, self, query, key, o)
  local plain = query:dim() == 2
  local function laid(x)                                -- (length, batch, size)
    if plain then return x:unsqueeze(2) end
    return self.batch_first and x:transpose(1, 2) or x
  end
  local q = project(self, laid(query), 1)
  local k, v, extra = extended(self, project(self, laid(key), 2), project(self, laid(value), 3))
  local targets, batch, size = q.shape[1], q.shape[2], self.embed_dim // self.num_heads
  local mask = combined(self, o, q.dtype, batch, extra)
  local function heads(x) return x:reshape(-1, batch, self.num_heads, size):permute(2, 3, 1, 4) end
  local y, weights = attend(self, heads(q), heads(k), heads(v), mask, o)
  y = self.out_proj(y:permute(3, 1, 2, 4):reshape(targets, batch, self.embed_dim))
  if plain then return y:squeeze(2), weights and weights:squeeze(1) end
  return self.batch_first and y:transpose(1, 2) or y, weights
end

return MultiheadAttention
