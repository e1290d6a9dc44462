-- Every op of the table, on the samples of spec/samples: gradients and their gradients against differences in f64, low
-- dtypes against f64, strides of every kind against dense operands, in-place forms against plain ones, and memory.

local ampl = require "ampl"
local samples = require "spec.support.samples"
local tensors = require "spec.support.tensors"

local TOLERANCE = {                     -- of outputs; gradients get twice as much
  f32 = 1e-5, bf16 = 2.0 ^ -6, f16 = 2.0 ^ -9,
}
local LAYOUTS = {"transposed", "sliced", "channels_last", "broadcast"}
local SHAPES = {{}, {0}, {2, 0, 3}, {1}, {3, 1, 2}}     -- element-wise ops take any

local all = samples.load()

local function tolerance(sample, dtype)
  local t = sample.tol
  if type(t) == "table" then return t[dtype] or TOLERANCE[dtype] end
  if t and dtype == "f32" then return t end
  return TOLERANCE[dtype]
end

local function gradient_tolerance(sample)
  local t = sample.tol
  return type(t) == "table" and t.f64 or type(t) == "number" and t or nil
end

local function takes(sample, dtype)
  if dtype == "f64" or not sample.dtypes then return true end
  for _, d in ipairs(sample.dtypes) do
    if d == dtype then return true end
  end
  return false
end

-- Calls f(sample, number) for each sample; says which one failed.
local function each(name, list, f)
  for i, sample in ipairs(list) do
    local ok, why = pcall(f, sample, i)
    if ok and why then ok = false end
    if not ok then
      error(("sample %d of %s (%s)%s: %s"):format(i, name, sample.file, sample.note and ", " .. sample.note or "",
                                               tostring(why)), 0)
    end
  end
end

-- Results smaller than `scale` are measured against it: operands are about 1, so these are sums that cancel.
local function compare_lists(got, want, tol, what)
  if #got ~= #want then return ("%d %ss, expected %d"):format(#got, what, #want) end
  local scale = tol > 1e-4 and 0.25 or 2.0 ^ -6
  for i = 1, #want do
    local why = tensors.compare(got[i], want[i], nil, tol, scale)
    if why then return ("%s %d: %s"):format(what, i, why) end
  end
end

-- Outputs and gradients of a run.
local function evaluate(name, sample, index, run)
  run.grad = sample.grad ~= false and not run.no_grad
  local make, made = samples.maker(index, run)
  local outputs = samples.run(name, sample, make)
  return outputs, run.grad and samples.gradients(outputs, made) or {}
end

local function differs(name, sample, index, run, reference, tol)
  local outputs, grads = evaluate(name, sample, index, run)
  local want, want_grads = evaluate(name, sample, index, reference)
  return compare_lists(outputs, want, tol, "output") or compare_lists(grads, want_grads, 2 * tol, "gradient")
end

local function in_dtype(why, ...)
  return why and table.concat({...}, ", ") .. ": " .. why
end

-- ------------------------------------------------------------------------------------------------ the checks

-- fn(leaves ...) for gradcheck, and the leaves.
local function function_of_leaves(name, sample, index)
  local make, made = samples.maker(index, {dtype = "f64", grad = true})
  sample.args(make)
  local places, leaves = {}, {}
  for i = 1, #made do
    if made.leaf[i] then
      leaves[#leaves + 1] = made[i]
      places[#places + 1] = i
    end
  end
  return function(...)
    local list = {table.unpack(made)}
    for k, i in ipairs(places) do list[i] = (select(k, ...)) end
    return table.unpack(samples.run(name, sample, samples.replayer(list)))
  end, leaves
end

local checks = {}

-- Whether there is a gradient to check.  An op with a backward must give one for every sample that does not say
-- otherwise; one without may be made of others that have.
local function differentiable(sample, record, fn, leaves)
  if sample.grad == false then return false end
  if record.differentiable then return true end
  if #leaves == 0 then return false end
  for _, y in ipairs {fn(table.unpack(leaves))} do
    if tensors.floats[y.dtype] and y.requires_grad then return true end
  end
  return false
end

function checks.gradients(name, list, record)
  each(name, list, function(sample, i)
    local fn, leaves = function_of_leaves(name, sample, i)
    if not differentiable(sample, record, fn, leaves) then return end
    ampl.gradcheck(fn, leaves, {rtol = gradient_tolerance(sample)})
  end)
end

checks["gradients of gradients"] = function(name, list, record)
  each(name, list, function(sample, i)
    local fn, leaves = function_of_leaves(name, sample, i)
    if sample.gradgrad == false or not differentiable(sample, record, fn, leaves) then return end
    ampl.gradgradcheck(fn, leaves, {rtol = gradient_tolerance(sample)})
  end)
end

function checks.dtypes(name, list)
  each(name, list, function(sample, i)
    for _, dtype in ipairs(sample.dtypes or {"f32", "bf16", "f16"}) do
      if dtype ~= "f64" then
        local why = differs(name, sample, i, {dtype = dtype}, {dtype = "f64"}, tolerance(sample, dtype))
        if why then return in_dtype(why, dtype) end
      end
    end
  end)
end

function checks.layouts(name, list)
  each(name, list, function(sample, i)
    for _, layout in ipairs(LAYOUTS) do
      for _, dtype in ipairs {"f64", "f32"} do
        local reference = {dtype = dtype, layout = layout == "broadcast" and "repeated" or "contiguous"}
        local tol = dtype == "f64" and 1e-11 or tolerance(sample, "f32")
        local why = takes(sample, dtype)
                    and differs(name, sample, i, {dtype = dtype, layout = layout}, reference, tol)
        if why then return in_dtype(why, dtype, layout) end
      end
    end
  end)
end

function checks.shapes(name, list)
  each(name, {list[1]}, function(sample, i)
    for _, shape in ipairs(SHAPES) do
      for _, dtype in ipairs(sample.dtypes or {"f32", "bf16", "f16"}) do
        local run, reference = {dtype = dtype, shape = shape}, {dtype = "f64", shape = shape}
        local why = differs(name, sample, i, run, reference, tolerance(sample, dtype))
        if why then return in_dtype(why, dtype, "shape " .. tensors.shape_text(shape)) end
      end
    end
  end)
end

checks["in place"] = function(name, list)
  each(name, list, function(sample, i)
    if sample.inplace == false then return end
    for _, layout in ipairs {"contiguous", "transposed", "sliced"} do
      local make = samples.maker(i, {dtype = "f64", layout = layout})
      local want = samples.run(name, sample, (samples.maker(i, {dtype = "f64", layout = layout})))[1]
      ampl.manual_seed(7)
      local args = table.pack(sample.args(make))
      local x = args[1]
      if tensors.is(x) and x.dtype == want.dtype and tensors.shape_text(x.shape) == tensors.shape_text(want.shape) then
        local method = x[name .. "_"]
        if not method then return ("there is no %s_"):format(name) end
        local y = method(table.unpack(args, 1, args.n))
        if y ~= x then return "does not return the tensor it was called on" end
        local why = tensors.compare(x, want, nil, 0)
        if why then return layout .. ": " .. why end
      end
    end
  end)
end

-- What a run leaves behind, once the collector is through.
function checks.memory(name, list)
  local function run()
    each(name, list, function(sample, i)
      for _, dtype in ipairs {"f64", "f32", "bf16"} do
        if takes(sample, dtype) then evaluate(name, sample, i, {dtype = dtype}) end
      end
    end)
    collectgarbage()
    collectgarbage()
    local m = ampl.memory()
    return m.live, m.tensors, m.nodes
  end
  run()
  local live, count, nodes = run()
  local live2, count2, nodes2 = run()
  assert.equal(live, live2)
  assert.equal(count, count2)
  assert.equal(nodes, nodes2)
end

-- ------------------------------------------------------------------------------------------------ the table

local ORDER = {"gradients", "gradients of gradients", "dtypes", "layouts", "shapes", "in place", "memory"}

-- Which checks a record asks for.
local function applies(check, record)
  if check == "shapes" then return record.elementwise end
  if check == "in place" then return record.inplace end
  return true
end

describe("ops", function()
  local known = {}
  for _, record in ipairs(ampl.ops()) do
    local name, list = record.name, all[record.name]
    known[name] = true
    describe(name, function()
      it("has samples", function() assert(list and #list > 0, name .. " has no sample in spec/samples") end)
      for _, check in ipairs(list and ORDER or {}) do
        if applies(check, record) then
          it(check, function() checks[check](name, list, record) end)
        end
      end
    end)
  end

  it("samples are of ops that exist", function()
    local strange = {}
    for name, list in pairs(all) do
      if not known[name] then strange[#strange + 1] = name .. " (" .. list[1].file .. ")" end
    end
    table.sort(strange)
    assert(#strange == 0, "no op is called " .. table.concat(strange, ", "))
  end)
end)
