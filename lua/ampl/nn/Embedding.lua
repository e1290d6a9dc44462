-- Embedding: row i of the weight for every id i, counted from 1.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"

---@class ampl.nn.Embedding : ampl.nn.Module
---@field weight ampl.Tensor (num_embeddings, embedding_dim)
local Embedding = Module:define("Embedding", {
  {"num_embeddings", "integer"}, {"embedding_dim", "integer"}, {"padding_idx", "integer?"},
  {"scale_grad_by_freq", "boolean", false}, {"device", "string?"}, {"dtype", "string?"},
})

---Row `padding_idx` starts as 0 and gets no gradient.
function Embedding:init(...)
  local o = self:options(...)
  self.num_embeddings, self.embedding_dim, self.padding_idx = o.num_embeddings, o.embedding_dim, o.padding_idx
  self.weight = core.empty({o.num_embeddings, o.embedding_dim},
                           {dtype = o.dtype, device = o.device, requires_grad = true})
  self._call = {padding_idx = o.padding_idx, scale_grad_by_freq = o.scale_grad_by_freq}
  self:reset_parameters()
end

---Draws the parameters anew, as PyTorch does.
function Embedding:reset_parameters()
  init.normal_(self.weight)
  if self.padding_idx then self.weight:detach()[self.padding_idx] = 0 end
end

function Embedding:forward(ids)
  return F.embedding(ids, self.weight, self._call)
end

return Embedding
