-- The samples of spec/samples with long operands in every layout of memory, beside the same values row-major.
--
-- A sample is grown by giving one of its sizes, wherever an operand has it, another value; `growths` lists the sizes
-- that can be asked to grow, and whether the op takes it is found out by calling it.  Element-wise ops take any shape,
-- which is given to all operands.  Samples of spec/samples/long are written for this:
-- {args = function(make, n) ... end}.

local ampl = require "ampl"
local samples = require "spec.support.samples"
local tensors = require "spec.support.tensors"

local grown = {}

-- ------------------------------------------------------------------------------------------------ layouts

-- How an operand can lie: with a step along its last dimension, with a step along its first, with gaps between its
-- rows and off alignment, crosswise, repeated by a stride of 0; and each operand in another of these ways.
grown.LAYOUTS = {"stepped", "rows", "narrowed", "transposed", "expanded", "mixed"}

local POISON = {f64 = 0 / 0, f32 = 0 / 0, bf16 = 0 / 0, f16 = 0 / 0, i64 = 1 << 40, i32 = 1 << 30, u8 = 255, bool = 1}

-- What lies beside the values that are meant: whoever reads it shows it.
local function poison(t)
  return ampl.full(t.shape, POISON[t.dtype], {dtype = t.dtype})
end

local lay = {}

function lay.stepped(t)
  local p = poison(t)
  local whole = ampl.stack({p, t, p}, -1)
  return whole:select(-1, 2), whole
end

function lay.rows(t)
  local whole = ampl.stack({poison(t), t}, 2)
  return whole:select(2, 2), whole
end

function lay.narrowed(t)
  local p, n = poison(t), t.shape[t.ndim]
  local whole = ampl.cat({p, t, p}, -1)
  return whole:narrow(-1, n + 1, n), whole
end

function lay.transposed(t)
  if t.ndim < 2 then return lay.stepped(t) end
  local order = {}
  for d = 1, t.ndim do order[d] = t.ndim + 1 - d end
  local whole = t:permute(order):contiguous()
  return whole:permute(order), whole
end

-- Along its longest dimension; the values change.
function lay.expanded(t)
  local longest = 1
  for d = 2, t.ndim do
    if t.shape[d] > t.shape[longest] then longest = d end
  end
  return t:narrow(longest, 1, 1):contiguous():expand(t.shape)
end

-- t's values (those of one position, where `expanded`) in this layout; `number`: which operand it is.  Also gives the
-- memory in which it lies.
function grown.lay_out(t, layout, number, keep_values)
  if t.ndim == 0 or t:numel() <= 1 then
    local copy = t:clone()
    return copy, copy
  end
  if layout == "mixed" then layout = grown.LAYOUTS[number % 4 + 1] end
  if layout == "expanded" and keep_values then layout = "narrowed" end
  return lay[layout](t)
end

-- ------------------------------------------------------------------------------------------------ operands

local PERIOD = 251                      -- of the values: a prime, so that no block ends with it
local OPTIONS = {"lo", "hi", "positive", "int", "labels", "bool", "dtype"}
local patterns = {}

local function numel(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

local function integer(dtype) return not tensors.floats[dtype] end

-- Options and dtype with which an operand of the sample is drawn in a run's dtype.
local function drawn_as(o, dtype)
  if o.int or o.labels or o.bool or o.dtype or not integer(dtype) then return o, dtype end
  if dtype == "bool" then return {bool = true}, dtype end
  return {int = true, lo = 1, hi = 9, dtype = dtype}, dtype
end

-- n values, all different, in no order
local function distinct(n, o, dtype)
  local at = ((ampl.arange(n, {dtype = "i64"}) * 7919) % n):to("f64")
  local lo, hi = o.lo or o.positive and 0.25 or -2, o.hi or 2
  return ((at + 0.5) * ((hi - lo) / n) + lo):to(dtype)
end

local function draw(shape, o, seed, dtype)
  local n = numel(shape)
  if n == 0 then return samples.draw(shape, o, samples.generator(seed), dtype) end
  if o.distinct and not o.int then return distinct(n, o, o.dtype or dtype):view(shape) end
  local key = {seed, dtype}
  for _, name in ipairs(OPTIONS) do key[#key + 1] = tostring(o[name]) end
  key = table.concat(key, " ")
  patterns[key] = patterns[key] or samples.draw({PERIOD}, o, samples.generator(seed), dtype)
  local times = (n + PERIOD - 1) // PERIOD
  return patterns[key]:view(1, PERIOD):expand(times, PERIOD):reshape(times * PERIOD):narrow(1, 1, n):clone():view(shape)
end

-- The shape with `size` turned into n.
local function grow(shape, size, n)
  local out = {}
  for d, s in ipairs(shape) do out[d] = s == size and n or s end
  return out
end

local MOST = 1 << 18                    -- elements of an operand

-- make() for a run: dtype, layout, dense (row-major copies of what the layout holds), size and n, or shape, grad.
local function maker(run)
  local made = {leaf = {}, whole = {}}
  return function(shape, o)
    o = o or {}
    if type(shape) ~= "table" then shape = {shape} end
    shape = run.shape or run.size and grow(shape, run.size, run.n) or shape
    if numel(shape) > MOST then error({too_large = true}) end
    local number = #made + 1
    local as, dtype = drawn_as(o, run.dtype)
    local t, whole = grown.lay_out(draw(shape, as, number, dtype), run.layout, number, o.distinct)
    if run.dense then t = t:contiguous() end
    made.whole[number] = whole
    t = t:detach()
    made.leaf[number] = tensors.floats[t.dtype] and o.grad ~= false or false
    if run.grad and made.leaf[number] then t:requires_grad_(true) end
    made[number] = t
    return t
  end, made
end

-- ------------------------------------------------------------------------------------------------ growths

-- The ways to grow a sample: {size = s} for every size of its operands, or {} for one that is written for any length.
function grown.growths(sample)
  if sample.long then return {{}} end
  local seen, list = {}, {}
  local make = samples.maker(1, {dtype = "f64"})
  sample.args(function(shape, o)
    for _, s in ipairs(type(shape) == "table" and shape or {shape}) do
      if s > 1 and not seen[s] then
        seen[s] = true
        list[#list + 1] = {size = s}
      end
    end
    return make(shape, o)
  end)
  return list
end

-- ------------------------------------------------------------------------------------------------ runs

local function arguments(sample, run)
  local make, made = maker(run)
  ampl.manual_seed(7)
  return made, table.pack(sample.args(make, run.n))
end

-- Outputs and gradients of a run; the cotangents lie as the operands do.
local function evaluate(name, sample, run)
  local make, made = maker(run)
  local outputs = samples.run(name, sample, make, run.n)
  if not run.grad then return outputs, {} end
  return outputs, samples.gradients(outputs, made, function(y, i)
    local t = grown.lay_out(draw(y.shape, {lo = -1, hi = 1}, 99 + i, y.dtype), run.layout, i + 1, true)
    return run.dense and t:contiguous() or t
  end)
end

local SPACING = {f64 = 1e-11, f32 = 1e-5, bf16 = 2.0 ^ -6, f16 = 2.0 ^ -9}

-- nil, or how got differs from want: bit for bit, or (tol, a factor) within what another order of sums makes.
local function differs(got, want, exact, tol, what)
  if #got ~= #want then return ("%d %ss, expected %d"):format(#got, what, #want) end
  for i = 1, #want do
    local g, w = got[i]:detach(), want[i]:detach()
    local same = g.dtype == w.dtype and tensors.shape_text(g.shape) == tensors.shape_text(w.shape)
    if not same or g:tobytes() ~= w:tobytes() then
      local why = tensors.compare(g, w, w.dtype, exact and 0 or tol * (SPACING[w.dtype] or 0))
      if why then return ("%s %d: %s"):format(what, i, why) end
    end
  end
end

-- false, for an op that does not take such operands; another error goes on.
local function refused(e)
  if type(e) == "string" or not (e.code or e.too_large) then error(e, 0) end
  return false
end

-- Runs the sample on long operands in run.layout and on dense ones of the same values.  Gives false where the op does
-- not take them, else nil or how they differ; and the outputs.
function grown.compare(name, sample, run, exact)
  local dense, strided = {}, {}
  for k, v in pairs(run) do dense[k], strided[k] = v, v end
  dense.dense = true
  local ok, want, want_grads = pcall(evaluate, name, sample, dense)
  if not ok then return refused(want) end
  local done, got, grads = pcall(evaluate, name, sample, strided)
  if not done then return "fails where dense operands pass: " .. tostring(got) end
  return differs(got, want, exact, 1, "output") or differs(grads, want_grads, exact, 4, "gradient"), want
end

-- The same for the op's in-place form, whose result is known.  What lies between the elements must stay.
function grown.compare_in_place(name, sample, run, exact, want)
  if run.layout == "expanded" then return end
  run.grad = false
  local made, args = arguments(sample, run)
  local x = args[1]
  if not tensors.is(x) or x ~= made[1] or x.dtype ~= want.dtype
     or tensors.shape_text(x.shape) ~= tensors.shape_text(want.shape) then return end
  local _, whole = grown.lay_out(want:detach(), run.layout, 1)
  x[name .. "_"](table.unpack(args, 1, args.n))
  return differs({x}, {want}, exact, 1, "in place")
         or differs({made.whole[1]}, {whole}, exact, 1, "memory written in place")
end

return grown
