-- Embedding: row i of the weight for every id i, counted from 1.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"
local raise = require "ampl.raise"

---@class ampl.nn.Embedding : ampl.nn.Module
---@field weight ampl.Tensor (num_embeddings, embedding_dim)
local Embedding = Module:define("Embedding", {
  {"num_embeddings", "integer", min = 0}, {"embedding_dim", "integer", min = 0}, {"padding_idx", "integer?"},
  {"scale_grad_by_freq", "boolean", false}, {"device", "device?"}, {"dtype", "dtype?"},
})

---Row `padding_idx` starts as 0 and gets no gradient.
function Embedding:init(...)
  local o = self:options(...)
  local at = o.padding_idx
  if at and (at == 0 or at > o.num_embeddings or at < -o.num_embeddings) then
    raise("EINDEX", self.name, ("padding_idx is %d; rows count from 1 to %d, or from the end with -1"):format(
      at, o.num_embeddings))
  end
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
