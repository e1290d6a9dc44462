-- The masks of attention layers: bool, true where a target does not look at a source, or floats added to the scores.

local core = require "ampl.core"
local args = require "ampl.args"
local raise = require "ampl.raise"

local masks = {}

local floats = {f32 = true, f16 = true, bf16 = true, f64 = true}

local function text(shape) return "{" .. table.concat(shape, ", ") .. "}" end

-- Raises unless a mask is of a dtype that means something, and of one of the shapes.
local function check(op, name, mask, shapes, meaning)
  if mask == nil then return end
  if mask.dtype ~= "bool" and not floats[mask.dtype] then
    raise("EDTYPE", op, ("%s is %s; it must be bool, true where not to look, or a float that is added to the scores")
      :format(name, mask.dtype))
  end
  local got = text(mask.shape)
  for _, shape in ipairs(shapes) do
    if text(shape) == got then return end
  end
  raise("ESHAPE", op, ("%s must be %s, %s, not %s"):format(name, text(shapes[1]), meaning, got))
end

---Raises unless the masks fit an attention layer, its query and its key.
---@param op string who asks, for messages
---@param attention ampl.nn.MultiheadAttention
---@param query ampl.Tensor
---@param key ampl.Tensor
---@param given table attn_mask, key_padding_mask, is_causal
---@param names? table<string, string> what the caller calls them
function masks.check(op, attention, query, key, given, names)
  local function name_of(name) return names and names[name] or name end
  if given.is_causal and not given.attn_mask then
    raise("EARG", op, ("%s needs %s: it says what the mask is"):format(name_of("is_causal"), name_of("attn_mask")))
  end
  if not (given.attn_mask or given.key_padding_mask) then return end
  local plain, first = query.ndim == 2, attention.batch_first
  if query.ndim ~= key.ndim or (query.ndim ~= 3 and not plain) then return end    -- the layer says so itself
  local function length(x) return x:size((first and not plain) and 2 or 1) end
  local targets, sources = length(query), length(key)
  local batch = plain and 1 or query:size(first and 1 or 2)
  check(op, name_of("attn_mask"), given.attn_mask,
        {{targets, sources}, {batch * attention.num_heads, targets, sources}},
        ("(targets, sources), or {%d, %d, %d}, one for each head of each sample"):format(
          batch * attention.num_heads, targets, sources))
  check(op, name_of("key_padding_mask"), given.key_padding_mask, {plain and {sources} or {batch, sources}},
        plain and "(sources)" or "(batch, sources)")
end

---A mask as numbers that are added to the scores.
---@param mask ampl.Tensor
---@param dtype string
---@return ampl.Tensor
function masks.additive(mask, dtype)
  if mask.dtype ~= "bool" then return mask end
  return core.zeros(mask.shape, {dtype = dtype, device = mask.device}):masked_fill(mask, -math.huge)
end

---softmax(scores + mask) over the sources; a target that may look nowhere has weights of 0, through which nothing flows
---back, where the plain formula gives 0 / 0.
---@param scores ampl.Tensor
---@param mask? ampl.Tensor additive
---@return ampl.Tensor
function masks.softmax(scores, mask)
  if not mask or mask:size(-1) == 0 then return scores:softmax(-1) end
  local blind = mask:detach():amax(-1, {keepdim = true}):eq(-math.huge)
  return (scores + mask:masked_fill(blind, 0)):softmax(-1):masked_fill(blind, 0)
end

---Raises unless the inputs of a layer that holds attention are tensors.
---@param op string
---@param ... any names and inputs, in turn
function masks.check_inputs(op, ...)
  local list = {...}
  for i = 1, select("#", ...), 2 do args.tensor(op, list[i], list[i + 1]) end
end

return masks
