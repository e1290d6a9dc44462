-- Ops that are made of others here: those with as many results as their arguments say, and those whose arguments no
-- record can hold.  Each becomes a function, a functional and a method.

local args = require "ampl.args"
local core = require "ampl.core"
local raise = require "ampl.raise"

---@param name string
---@param fn function
local function register(name, fn)
  core[name] = fn
  core.functional[name] = fn
  core.register_method(name, fn)
end

-- The size of dimension `dim`.
local function size_of(op, x, dim)
  local n = x:dim()
  if dim == 0 or dim > n or dim < -n then
    raise("EINDEX", op, n == 0 and "a tensor of rank 0 has no dimensions"
          or ("dim %d is out of range for %d dimensions: give 1 to %d, or -%d to -1"):format(dim, n, n, n))
  end
  return x:size(dim)
end

-- Dimensions may be larger than any list that memory takes (expand), and counts larger still.
local MOST = 1 << 22
local function limited(op, n)
  if n > MOST then raise("EVALUE", op, ("%d pieces; at most %d are made"):format(n, MOST)) end
  return n
end

-- Pieces of the given lengths, in order.
local function pieces(x, dim, lengths)
  local out, start = {}, 1
  for i, length in ipairs(lengths) do
    out[i] = x:narrow(dim, start, length)
    start = start + length
  end
  return out
end

local function even_lengths(size, each)
  local lengths = {}
  for start = 0, size - 1, each do lengths[#lengths + 1] = math.min(each, size - start) end
  return #lengths > 0 and lengths or {0}
end

---Cuts a dimension into views of a given size (the last one may be smaller), or of the sizes in a list.
---@return ampl.Tensor[]
register("split", args.declare("split", {
  {"x", "tensor"}, {"split_size_or_sections", "size"}, {"dim", "integer", 1},
}, function(o)
  local size, how = size_of("split", o.x, o.dim), o.split_size_or_sections
  if type(how) == "number" then
    if how < 1 and not (how == 0 and size == 0) then
      raise("EVALUE", "split", ("pieces of %d of a dimension of size %d"):format(how, size))
    end
    limited("split", size // math.max(how, 1))
    return pieces(o.x, o.dim, even_lengths(size, math.max(how, 1)))
  end
  local sum = 0
  for _, length in ipairs(how) do
    if length < 0 then raise("EVALUE", "split", ("a piece of %d"):format(length)) end
    sum = sum + length
  end
  if sum ~= size then
    raise("ESHAPE", "split", ("the sections add up to %d, dim %d has size %d"):format(sum, o.dim, size))
  end
  return pieces(o.x, o.dim, how)
end))

---Cuts a dimension into that many views of one size, or fewer, the last one perhaps smaller.
---@return ampl.Tensor[]
register("chunk", args.declare("chunk", {{"x", "tensor"}, {"chunks", "integer"}, {"dim", "integer", 1}}, function(o)
  local size = size_of("chunk", o.x, o.dim)
  if o.chunks < 1 then raise("EVALUE", "chunk", ("%d chunks"):format(o.chunks)) end
  limited("chunk", math.min(o.chunks, size > 0 and size or o.chunks))
  if size > 0 then return pieces(o.x, o.dim, even_lengths(size, (size - 1) // o.chunks + 1)) end
  local lengths = {}
  for i = 1, o.chunks do lengths[i] = 0 end
  return pieces(o.x, o.dim, lengths)
end))

---The slices of a dimension, each without it.  Views.
---@return ampl.Tensor[]
register("unbind", args.declare("unbind", {{"x", "tensor"}, {"dim", "integer", 1}}, function(o)
  local out = {}
  for i = 1, limited("unbind", size_of("unbind", o.x, o.dim)) do out[i] = o.x:select(o.dim, i) end
  return out
end))

-- Patches of images; the method of this name makes windows.
core.functional.unfold = core.functional.im2col

-- ------------------------------------------------------------------------------------------------ interpolate
local modes = {nearest = {"nearest"}, linear = {"linear", 3}, bilinear = {"linear", 4}, trilinear = {"linear", 5},
               bicubic = {"cubic", 4}}

-- A number for all sides, or a list with one for each.
local function per_side(name, v, sides)
  if type(v) == "number" then
    local one = v
    v = {}
    for d = 1, sides do v[d] = one end
  elseif #v ~= sides then
    raise("EARG", "interpolate", ("%s has %d numbers, the input has %d sides"):format(name, #v, sides))
  end
  return v
end

-- The sizes of the result, and the scales where they count (0: the ratio of sizes does).
local function target(o, sides)
  if (o.size == nil) == (o.scale_factor == nil) then
    raise("EARG", "interpolate", "give size or scale_factor, and not both")
  end
  if o.size then return per_side("size", o.size, sides), {} end
  local scale, size = per_side("scale_factor", o.scale_factor, sides), {}
  for d = 1, sides do
    if not (scale[d] > 0 and scale[d] < math.huge) then
      raise("EVALUE", "interpolate", ("scale_factor %s"):format(scale[d]))
    end
    size[d] = math.floor(o.input:size(d + 2) * scale[d])
  end
  return size, o.recompute_scale_factor and {} or scale
end

---Images or rows resampled to a size or by a factor.
---@return ampl.Tensor
register("interpolate", args.declare("interpolate", {
  {"input", "tensor"}, {"size", "size?"}, {"scale_factor", "numbers?"}, {"mode", "string", "nearest"},
  {"align_corners", "boolean?"}, {"recompute_scale_factor", "boolean?"},
}, function(o)
  local mode, rank = modes[o.mode], o.input:dim()
  if not mode then
    raise("EVALUE", "interpolate", ('mode must be "nearest", "linear", "bilinear", "bicubic" or "trilinear", not %q')
      :format(o.mode))
  end
  if rank < 3 or rank > 5 or (mode[2] and mode[2] ~= rank) then
    raise("ESHAPE", "interpolate", ('mode "%s" takes tensors of rank %s, the input has rank %d')
      :format(o.mode, mode[2] or "3, 4 or 5", rank))
  end
  if o.align_corners ~= nil and o.mode == "nearest" then
    raise("EARG", "interpolate", 'align_corners has no meaning with mode "nearest"')
  end
  local size, scale = target(o, rank - 2)
  return core.functional.resample(o.input, size, {
    mode = mode[1], align_corners = o.align_corners or false, scale_0 = scale[1] or 0, scale_1 = scale[2] or 0,
    scale_2 = scale[3] or 0,
  })
end))

---x:where(condition, y): x where the condition is true, else y.
core.register_method("where", function(x, condition, y) return core.where(condition, x, y) end)

---x itself when it is row-major in memory, else a copy that is.
core.register_method("contiguous", function(x)
  return x:is_contiguous() and x or core.internal.contiguous(x)
end)
