-- x[key] and x[key] = v.
--
--   x[2]              position 2 of the first dimension, without that dimension
--   x[{2, {1, 3}, {}}]  a position, a range with both ends ({first, last, step}), all of a dimension
--   x[mask]           the elements (or rows ...) where a bool tensor is true
--   x[idx]            the rows at the positions in an integer tensor; in a list, too: x[{{}, idx}]
--
-- Positions and ranges are views, so writing to them writes x.

local core = require "ampl.core"
local kinds = require "ampl.kinds"
local raise = require "ampl.raise"

local index = {}

local function bad_position(dim, i, size)
  if size == 0 then raise("EINDEX", "index", ("position %d of dimension %d, which is empty"):format(i, dim)) end
  raise("EINDEX", "index", ("position %d of dimension %d; positions count from 1 to %d, or from the end: -1 to %d")
    :format(i, dim, size, -size))
end

-- A whole number from a number; dim is for messages.
local function whole(i, dim)
  local n = math.tointeger(i)
  if not n then raise("EARG", "index", ("%s is no position of dimension %d"):format(tostring(i), dim)) end
  return n
end

-- An end of a range, counted from 1.
local function range_end(i, dim, size)
  local n = whole(i, dim)
  if n < 0 then n = n + size + 1 end
  return n
end

-- Dimension `dim` of v cut to a range; `at` is the dimension as the user counts.
local function cut(v, dim, range, at)
  local size, n = v:size(dim), #range
  if n == 0 then return v end
  if n == 1 or n > 3 or type(range[1]) ~= "number" or type(range[2]) ~= "number" then
    raise("EARG", "index", ("the range of dimension %d must be {first, last}, {first, last, step} or {} for all")
      :format(at))
  end
  local first, last = range_end(range[1], at, size), range_end(range[2], at, size)
  if first < 1 or (first > size and last >= first) then bad_position(at, range[1], size) end
  if last < 0 or last > size then bad_position(at, range[2], size) end
  if last < first then return v:narrow(dim, 1, 0) end
  if n == 2 then return v:narrow(dim, first, last - first + 1) end
  return v:slice(dim, first, last, whole(range[3], at))
end

local function key_error(key)
  raise("EARG", "index", ("a %s is no index; there are numbers, lists of numbers and ranges, and tensors")
    :format(type(key)))
end

-- The view that the numbers and ranges of a list pick, and the list of index tensors for its dimensions (false: none),
-- if there are any.
local function view_of(x, key)
  local v, dim, rank = x, 1, x:dim()                    -- dim: of v, that the next entry is about
  local at = 0                                          -- the same as the user counts, in x
  local tensors, covered = nil, 0                       -- dimensions of v that the tensors are about
  for k = 1, #key do
    local entry = key[k]
    local takes = core.is_tensor(entry) and entry.dtype == "bool" and entry:dim() or 1
    at = at + takes
    if at > rank then
      raise("EINDEX", "index", ("the key names %d dimensions or more, x has %d"):format(at, rank))
    end
    if type(entry) == "number" then
      local i, size = whole(entry, at), v:size(dim)
      if i == 0 or i > size or i < -size then bad_position(at, i, size) end
      v = v:select(dim, i)
    elseif core.is_tensor(entry) then
      tensors = tensors or {}
      for _ = covered + 1, dim - 1 do tensors[#tensors + 1] = false end
      tensors[#tensors + 1] = entry
      dim = dim + takes
      covered = dim - 1
    elseif type(entry) == "table" and kinds.is_plain(entry) then
      v = cut(v, dim, entry, at)
      dim = dim + 1
    else
      key_error(entry)
    end
  end
  return v, tensors
end

-- A mask with dimensions of size 1 behind, so that it broadcasts over x.
local function mask_for(x, mask)
  for _ = mask:dim() + 1, x:dim() do mask = mask:unsqueeze(-1) end
  return mask
end

local function check_mask(x, mask)
  local rank = mask:dim()
  local fits = rank <= x:dim()
  for d = 1, fits and rank or 0 do fits = fits and mask:size(d) == x:size(d) end
  if not fits then
    raise("ESHAPE", "index", ("the mask {%s} does not fit x {%s}"):format(table.concat(mask.shape, ", "),
                                                                      table.concat(x.shape, ", ")))
  end
end

---x[key]
---@param x ampl.Tensor
---@param key any
---@return ampl.Tensor
function index.index(x, key)
  if core.is_tensor(key) then
    if key.dtype == "bool" and key:dim() == x:dim() then
      check_mask(x, key)
      return x:masked_select(key)
    end
    return x:index({key})
  end
  if type(key) == "number" then key = {key} end
  if type(key) ~= "table" then key_error(key) end
  local v, tensors = view_of(x, key)
  return tensors and v:index(tensors) or v
end

-- v in x's dtype, without the dimensions of size 1 in front that x has not.
local function fitted(x, v)
  if v.dtype ~= x.dtype then v = v:to(x.dtype) end
  local extra = v:dim() - x:dim()
  for _ = 1, extra do
    if v:size(1) ~= 1 then break end
    v = v:squeeze(1)
  end
  return v
end

-- Everything of x becomes v.
local function write(x, v)
  if core.is_tensor(v) then
    x:copy_(fitted(x, v))
  else
    x:fill_(v)
  end
end

---x[key] = v; v is a tensor that broadcasts, a number or a boolean.
---@param x ampl.Tensor
---@param key any
---@param v any
function index.newindex(x, key, v)
  if type(v) ~= "number" and type(v) ~= "boolean" and not core.is_tensor(v) then
    raise("EARG", "newindex", ("a tensor, a number or a boolean can be written, not a %s"):format(type(v)))
  end
  if core.is_tensor(key) then
    if key.dtype == "bool" and (not core.is_tensor(v) or v:dim() == 0) then
      check_mask(x, key)
      x:masked_fill_(mask_for(x, key), core.is_tensor(v) and fitted(x, v) or v)
    else
      x:index_put_({key}, core.is_tensor(v) and v.dtype ~= x.dtype and v:to(x.dtype) or v)
    end
    return
  end
  if type(key) == "number" then key = {key} end
  if type(key) ~= "table" then key_error(key) end
  local part, tensors = view_of(x, key)
  if tensors then
    part:index_put_(tensors, core.is_tensor(v) and v.dtype ~= x.dtype and v:to(x.dtype) or v)
  else
    write(part, v)
  end
end

return index
