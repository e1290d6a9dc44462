-- Tensors as lists of numbers, and their comparison.

local tensors = {}

local formats = {f64 = {"d", 8}, f32 = {"f", 4}, i64 = {"i8", 8}, i32 = {"i4", 4}, u8 = {"B", 1}, bool = {"B", 1}}
local PIECE = 128                       -- values unpacked at a time: each takes a place on Lua's stack

tensors.floats = {f64 = true, f32 = true, bf16 = true, f16 = true}

function tensors.is(v) return type(v) == "userdata" end

-- The elements of t, row-major, as numbers.
function tensors.values(t)
  t = t:detach()
  if t.dtype == "f16" or t.dtype == "bf16" then t = t:to("f32") end
  local bytes, f, out = t:tobytes(), formats[t.dtype], {}
  local n, at = #bytes // f[2], 1
  local full = "<" .. f[1]:rep(PIECE)
  for i = 1, n, PIECE do
    local m = math.min(PIECE, n - i + 1)
    local piece = table.pack(string.unpack(m == PIECE and full or "<" .. f[1]:rep(m), bytes, at))
    table.move(piece, 1, m, i, out)
    at = piece[m + 1]
  end
  return out
end

function tensors.shape_text(s) return "{" .. table.concat(s, ", ") .. "}" end

-- Flat position i of a tensor of this shape as a list of positions.
function tensors.place(i, shape)
  local at, k = {}, i - 1
  for d = #shape, 1, -1 do
    at[d] = k % shape[d] + 1
    k = k // shape[d]
  end
  return tensors.shape_text(at)
end

-- nil when g and r, lists of numbers, agree: max|g - r| / max(max|r|, floor) <= tol over the finite r; NaN, infinities
-- and everything with tol 0 must be the same.  Else a line about the worst place.
function tensors.compare_values(g, r, shape, tol, floor)
  local inf, scale, worst, at = math.huge, floor or 2.0 ^ -20, 0, nil
  if #g ~= #r then return ("%d values, expected %d"):format(#g, #r) end
  for i = 1, #r do
    local a = math.abs(r[i])
    if a < inf and a > scale then scale = a end
  end
  for i = 1, #r do
    local x, y = g[i], r[i]
    local e
    if y ~= y then
      e = x ~= x and 0 or inf
    elseif y == inf or y == -inf then
      e = x == y and 0 or inf
    else
      e = math.abs(x - y) / scale
      if e ~= e then e = inf end
    end
    if e > worst then worst, at = e, i end
  end
  if worst > tol then
    return ("at %s: expected %.17g, got %.17g, error %.3g, tolerance %.3g"):format(tensors.place(at, shape), r[at],
                                                                                 g[at], worst, tol)
  end
end

-- The same for tensors; shape and (unless nil) dtype must agree, and integers and bools are compared exactly.
function tensors.compare(got, ref, dtype, tol, floor)
  if not tensors.is(got) then return ("got %s, expected a tensor"):format(tostring(got)) end
  local gs, rs = tensors.shape_text(got.shape), tensors.shape_text(ref.shape)
  if gs ~= rs then return ("shape %s, expected %s"):format(gs, rs) end
  if dtype and got.dtype ~= dtype then return ("dtype %s, expected %s"):format(got.dtype, dtype) end
  return tensors.compare_values(tensors.values(got), tensors.values(ref), ref.shape,
                                tensors.floats[got.dtype] and tol or 0, floor)
end

-- The same values with other strides: "transposed", "sliced" (with gaps, both sides), "channels_last".
function tensors.lay_out(t, layout, ampl)
  local n = t.ndim
  if layout == "transposed" and n >= 2 then return t:transpose(1, -1):contiguous():transpose(1, -1) end
  if layout == "sliced" and n >= 1 then
    local length = t.shape[n]
    return ampl.cat({t, t, t}, -1):narrow(-1, length + 1, length)
  end
  if layout == "channels_last" and n == 4 then return t:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3) end
  return t
end

return tensors
