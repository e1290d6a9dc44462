-- Every op of the table on long operands in every layout of memory: outputs, gradients and in-place forms must be those
-- of row-major copies.  Lengths lie on both sides of what kernels take at a time: blocks of 512, 1,024 and 2,048
-- elements, chunks of 16,384, and what is worth several threads.  AMPL_CPU chooses the instruction set.

local ampl = require "ampl"
local grown = require "spec.support.grown"
local samples = require "spec.support.samples"
local tensors = require "spec.support.tensors"

local light = os.getenv("AMPL_SPEC_SANITIZE") or os.getenv("AMPL_SPEC_GC")      -- one run of everything will do

local DTYPES = {"f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool"}
local SHORT = light and {513, 1025} or {513, 1025, 511, 1023, 2049, 512, 4097, 1024}
local LONG = {16385, 70001, 16383, 65537, 16384, 33000}

-- The longest operands of an op whose work grows as their square
local MOST = {scaled_dot_product_attention = 1100}

local all, long = samples.load(), samples.load("long")

local function text(run)
  return ("%s, %s, %s%s"):format(run.dtype, run.layout, run.shape and "shape " .. tensors.shape_text(run.shape)
                                 or "n = " .. run.n, run.size and " for " .. run.size or "")
end

-- The outputs, or nil where the op takes no such operands; `in_place`: its in-place form as well.  Fails with the op,
-- the sample and the run.
local function check(name, sample, run, exact, in_place)
  local why, outputs = grown.compare(name, sample, run, exact)
  if not why and outputs and in_place then
    why = grown.compare_in_place(name, sample, run, exact, outputs[1])
    if why then name = name .. "_" end
  end
  if why then error(("%s (%s), %s: %s"):format(name, sample.file, text(run), why), 0) end
  return outputs
end

local function takes(sample, dtype)
  if not sample.dtypes or not tensors.floats[dtype] then return true end
  for _, d in ipairs(sample.dtypes) do
    if d == dtype then return true end
  end
  return dtype == "f64"
end

local function differentiated(sample, dtype) return sample.grad ~= false and tensors.floats[dtype] or false end

-- ------------------------------------------------------------------------------------------------ element-wise ops

-- Every dtype x layout, one of the short and one of the long lengths each: 1-d, and as rows or columns.
local function elementwise(name, list, record)
  local sample, turn, taken = list[1], #name, 0
  for _, dtype in ipairs(DTYPES) do
    for _, layout in ipairs(grown.LAYOUTS) do
      turn = turn + 1
      local short, much = SHORT[turn % #SHORT + 1], LONG[turn % #LONG + 1]
      local shapes = {{short}, turn % 2 == 0 and {3, short} or {short, 3}, {much}}
      if light then shapes = {shapes[turn % 2 + 1]} end
      for _, shape in ipairs(shapes) do
        local run = {dtype = dtype, layout = layout, shape = shape, grad = differentiated(sample, dtype)}
        local exact = not (layout == "expanded" or layout == "mixed")
        if check(name, sample, run, exact, record.inplace and sample.inplace ~= false) then taken = taken + 1 end
      end
    end
  end
  return taken
end

-- ------------------------------------------------------------------------------------------------ all ops

local FLOATS = 4                        -- of DTYPES

-- Ways to grow samples of an op, in turns of layouts and dtypes; the first that the op takes, in all of them (`whole`).
local function structured(name, list, in_place, whole)
  local turn, taken, limit = #name, 0, MOST[name] or LONG[2]
  local function layout(i) return grown.LAYOUTS[i % #grown.LAYOUTS + 1] end
  local function short(i) return math.min(SHORT[i % #SHORT + 1], limit) end

  -- The elements of the outputs; nil: the op takes no such operands.
  local function try(sample, growth, dtype, how, n)
    if not takes(sample, dtype) then dtype = "f64" end
    local run = {dtype = dtype, layout = how, n = n, size = growth.size, grad = differentiated(sample, dtype)}
    local outputs, elements = check(name, sample, run, false, in_place and sample.inplace ~= false), 0
    for _, y in ipairs(outputs or {}) do elements = elements + y:numel() end
    if outputs then taken = taken + 1 end
    return outputs and elements
  end

  local function in_all(sample, growth)
    for d = 1, FLOATS do
      for l = 1, #grown.LAYOUTS do
        if not light or (d + l) % 4 == 0 then try(sample, growth, DTYPES[d], layout(l), short(d + l)) end
      end
    end
  end

  local function grow(sample, growth)
    local n = short(turn)
    local elements = try(sample, growth, DTYPES[turn % FLOATS + 1], layout(turn), n)
    if not elements then return end
    local most = elements > 64 * n and n or limit
    for k = turn + 1, light and turn or turn + 2 do
      local much = LONG[k % #LONG + 1]
      if much <= most then try(sample, growth, DTYPES[turn % FLOATS + 1], layout(k), much) end
    end
    if whole then in_all(sample, growth) end
    whole = false
  end

  for _, sample in ipairs(list) do
    for _, growth in ipairs(grown.growths(sample)) do
      turn = turn + 1
      if not light or taken == 0 or turn % 3 == 0 then grow(sample, growth) end
    end
  end
  return taken
end

-- ------------------------------------------------------------------------------------------------ the table

describe("layouts", function()
  for _, record in ipairs(ampl.ops()) do
    local name = record.name
    if not record.creator then
      it(name, function()
        local list, taken = all[name] or {}, 0
        local own = long[name]
        for _, s in ipairs(own or {}) do s.long = true end
        if record.elementwise then taken = elementwise(name, list, record) end
        taken = taken + structured(name, list, record.inplace, not record.elementwise)
        if own then taken = taken + structured(name, own, record.inplace, true) end
        assert(taken > 0, name .. " takes no sample with long operands: give one in spec/samples/long")
      end)
    end
  end
end)
