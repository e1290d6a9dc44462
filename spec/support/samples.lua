-- The samples of spec/samples: how their operands are drawn, and how an op is run on them.
--
-- A file of spec/samples returns a table: name of an op -> list of samples.  A sample is
--   {args = function(make) return x, y, {option = 1} end, ...}
-- make(shape [, opts]) draws a tensor.  The same sample drawn twice has the same values, in every dtype and layout:
-- they are odd multiples of a power of two with at most eight bits, so bf16 and f16 hold them exactly, and none lies
-- on 0, 0.5, 1 or another kink.  opts:
--   lo, hi    bounds (-2 and 2)              positive  from 0.25 to 2
--   distinct  all values differ              int       i64 from lo (-5) to hi (5)
--   labels=n  i64 from 1 to n                bool      booleans
--   grad=false  wants no gradient            dtype     this one, whatever the run's is
-- Other fields of a sample: grad = false, gradgrad = false (there is none), inplace = false, dtypes = {...} (those
-- besides f64 in which it runs), tol (a number: for f32 and the checks of gradients; or a table by dtype), note.

local ampl = require "ampl"
local lfs = require "lfs"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"

local samples = {}

-- All samples, or those of a subfolder: name -> list.  Two files may hold samples of one op.
function samples.load(sub)
  local all, folder = {}, folders.project .. "spec/samples" .. (sub and "/" .. sub or "")
  local files = {}
  for file in lfs.dir(folder) do
    if file:find("%.lua$") then files[#files + 1] = file end
  end
  table.sort(files)
  for _, file in ipairs(files) do
    local list = dofile(folder .. "/" .. file)
    for name, of_op in pairs(list) do
      all[name] = all[name] or {}
      for _, s in ipairs(of_op) do
        s.file = file
        table.insert(all[name], s)
      end
    end
  end
  return all
end

-- ------------------------------------------------------------------------------------------------ drawing

local function generator(seed)
  local state = seed * 2654435761 + 88172645463325252
  return function(n)                    -- 0 .. n - 1
    state = state ~ (state << 13)
    state = state ~ (state >> 7)
    state = state ~ (state << 17)
    return (state >> 11) % n
  end
end

-- Odd multiples of q in lo .. hi, as the first of them and their number.
local function grid(lo, hi)
  local top = math.max(math.abs(lo), math.abs(hi))
  local q = 2.0 ^ (math.ceil(math.log(top, 2)) - 8)
  local first = math.ceil((lo / q - 1) / 2)
  return q, first, math.floor((hi / q - 1) / 2) - first + 1
end

local function draw_floats(n, o, random)
  local lo, hi = o.lo or o.positive and 0.25 or -2, o.hi or 2
  local q, first, count = grid(lo, hi)
  assert(count >= 1, "no value to draw between lo and hi")
  local out = {}
  if not o.distinct then
    for i = 1, n do out[i] = (2 * (first + random(count)) + 1) * q end
    return out
  end
  while count < n do                    -- too many for eight bits: a finer grid
    q = q / 2
    first = math.ceil((lo / q - 1) / 2)
    count = math.floor((hi / q - 1) / 2) - first + 1
  end
  local places = {}
  for i = 1, count do places[i] = i end
  for i = 1, n do
    local j = i + random(count - i + 1)
    places[i], places[j] = places[j], places[i]
    out[i] = (2 * (first + places[i] - 1) + 1) * q
  end
  return out
end

local function draw_integers(n, lo, hi, random)
  local out = {}
  for i = 1, n do out[i] = lo + random(hi - lo + 1) end
  return out
end

local function numel(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

-- Whether a tensor drawn with these options is a float, and so takes part in gradients and dtypes.
local function is_float(o) return not (o.int or o.labels or o.bool) and (not o.dtype or tensors.floats[o.dtype]) end

local function draw(shape, o, random, dtype)
  local n = numel(shape)
  local values
  if o.bool then
    values, dtype = draw_integers(n, 0, 1, random), "bool"
    for i = 1, n do values[i] = values[i] == 1 end
  elseif o.labels then
    values, dtype = draw_integers(n, 1, o.labels, random), o.dtype or "i64"
  elseif o.int then
    values, dtype = draw_integers(n, o.lo or -5, o.hi or 5, random), o.dtype or "i64"
  else
    values, dtype = draw_floats(n, o, random), o.dtype or dtype
  end
  if n == 0 then return ampl.zeros(shape, {dtype = dtype}) end
  return ampl.tensor(values, {dtype = dtype}):view(shape)
end

samples.generator, samples.draw = generator, draw

-- The last dimension with more than one position; nil: there is none.
local function wide_dimension(shape)
  for d = #shape, 1, -1 do
    if shape[d] > 1 then return d end
  end
end

-- A tensor that repeats itself along one dimension: by strides of 0, or densely.
local function draw_repeating(shape, o, random, dtype, dense)
  local d, small = wide_dimension(shape), {table.unpack(shape)}
  if not d or o.distinct then return draw(shape, o, random, dtype) end
  small[d] = 1
  local t = draw(small, o, random, dtype):expand(shape)
  return dense and t:contiguous() or t
end

-- A function `make` for a run, and the list of what it has made.  run: dtype, layout, shape (instead of all shapes that
-- the sample asks for), grad (floats require gradients).
function samples.maker(index, run)
  local random, made = generator(index), {}
  return function(shape, o)
    o = o or {}
    if type(shape) ~= "table" then shape = {shape} end
    if run.shape then shape = run.shape end
    local t
    if run.layout == "broadcast" or run.layout == "repeated" then
      t = draw_repeating(shape, o, random, run.dtype, run.layout == "repeated")
    else
      t = tensors.lay_out(draw(shape, o, random, run.dtype), run.layout, ampl)
    end
    t = t:detach()
    local differentiable = is_float(o) and o.grad ~= false
    if run.grad and differentiable then t:requires_grad_(true) end
    made[#made + 1] = t
    made.leaf = made.leaf or {}
    made.leaf[#made] = differentiable
    return t
  end, made
end

-- A `make` that hands out these tensors in order.
function samples.replayer(list)
  local i = 0
  return function()
    i = i + 1
    return list[i]
  end
end

-- ------------------------------------------------------------------------------------------------ running

local function collect(v, out)
  if tensors.is(v) then
    out[#out + 1] = v
  elseif type(v) == "table" then
    for _, e in ipairs(v) do collect(e, out) end
  end
end

-- The op's function: ampl's, F's or the method.
function samples.callable(name, first)
  local F, record = ampl.nn and ampl.nn.functional, ampl.ops(name)
  if record and record.method_only then return tensors.is(first) and first[name] or nil end
  return ampl[name] or F and F[name] or tensors.is(first) and first[name] or nil
end

-- The tensors that the sample's op returns, lists taken apart, for operands from `make`.  n: see samples/long.
function samples.run(name, sample, make, n)
  ampl.manual_seed(7)
  local args = table.pack(sample.args(make, n))
  local f = samples.callable(name, args[1])
  if not f then error("there is no function or method " .. name, 0) end
  local results, out = table.pack(f(table.unpack(args, 1, args.n))), {}
  for i = 1, results.n do collect(results[i], out) end
  return out
end

-- The gradients of the outputs, under fixed weights, with regard to the floats in `made`.  weigh(y, number), if given,
-- makes the weights of an output.
function samples.gradients(outputs, made, weigh)
  local ys, cots, xs = {}, {}, {}
  local random = generator(99)
  for i, y in ipairs(outputs) do
    if tensors.floats[y.dtype] and y.requires_grad then
      ys[#ys + 1] = y
      cots[#cots + 1] = weigh and weigh(y, i) or draw(y.shape, {lo = -1, hi = 1}, random, "f64"):to(y.dtype)
    end
  end
  for i, t in ipairs(made) do
    if made.leaf[i] then xs[#xs + 1] = t end
  end
  if #ys == 0 or #xs == 0 then return {} end
  local grads = table.pack(ampl.grad(ys, xs, {grad_outputs = cots, allow_unused = true}))
  for i, x in ipairs(xs) do
    if not grads[i] then grads[i] = ampl.zeros_like(x) end
  end
  return grads
end

return samples
