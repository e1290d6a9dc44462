-- The fused optimiser steps as ops: dtypes, layouts, threads, 16-bit copies, unscaling and skipping on the device,
-- messages.  What they compute is checked by golden_optim_spec.lua.

local ampl = require "ampl"
local internal = require("ampl.core").internal

local adam = {beta1 = 0.9, beta2 = 0.999, eps = 1e-8}

-- op, lists of state, counts with their first value, options; mean: the list of state that is no square
local steps = {
  {"sgd_step", 0, {}, {}}, {"sgd_step", 1, {}, {momentum = 0.9}},
  {"sgd_step", 1, {}, {momentum = 0.9, nesterov = true}},
  {"sgd_step", 1, {}, {momentum = 0.9, dampening = 0.5, first = true, maximize = true}},
  {"adam_step", 2, {0}, adam, mean = 1}, {"adam_step", 3, {0}, {amsgrad = true, decoupled = true}, mean = 1},
  {"adamax_step", 2, {0}, adam, mean = 1}, {"nadam_step", 2, {0, 1}, adam, mean = 1},
  {"radam_step", 2, {0}, adam, mean = 1}, {"radam_step", 2, {20}, adam, mean = 1},
  {"rmsprop_step", 1, {0}, {}}, {"rmsprop_step", 3, {0}, {centered = true, momentum = 0.5}, mean = 2},
  {"rmsprop_step", 2, {0}, {momentum = 0.5}}, {"rmsprop_step", 2, {0}, {centered = true}, mean = 2},
  {"adagrad_step", 1, {0}, {}}, {"adadelta_step", 2, {0}, {}}, {"lion_step", 1, {}, {}},
  {"lamb_step", 2, {0}, {}, mean = 1},
}

local function values(x) return x:to("f64"):reshape(-1):totable() end

-- The tensors of a step over parameters of the given shapes, all made in f32 and brought to `dtype` where it differs.
local function operands(step, shapes, opts)
  opts = opts or {}
  local wide = opts.dtype == "f64" and "f64" or "f32"
  ampl.manual_seed(9)
  local lists = {}
  local function list(make)
    for i, shape in ipairs(shapes) do lists[#lists + 1] = make(shape, i) end
  end
  local function layout(x)
    if opts.layout == "transposed" and x.ndim == 2 then return x:t():clone():contiguous():t() end
    return x
  end
  list(function(shape) return layout(ampl.randn(shape):to(opts.dtype or "f32")) end)
  list(function(shape) return ampl.randn(shape):to(opts.grad or wide) end)
  for k = 1, step[2] do
    list(function(shape)
      local x = ampl.rand(shape)                        -- a mean square is no less than the square of the mean
      return layout((k == step.mean and x * 0.1 or x + 0.5):to(wide))
    end)
  end
  for _, start in ipairs(step[3]) do list(function() return ampl.full({}, start, {dtype = wide}) end) end
  if opts.low then list(function(shape) return ampl.zeros(shape, {dtype = opts.low}) end) end
  return lists
end

local function run(step, lists, n, extra)
  local options = {n = n, lr = 0.01, weight_decay = 0.1}
  for k, v in pairs(step[4]) do options[k] = v end
  extra = extra or {}
  internal[step[1]](extra.inv_scale, extra.found_inf, lists, options)
  return lists
end

local function name(i) return ("%s %d"):format(steps[i][1], i) end

local function same(a, b)
  for i, x in ipairs(a) do assert.equal(x:tobytes(), b[i]:tobytes()) end
end

local function near(a, b, tol)
  for i, x in ipairs(a) do
    local u, v = values(x), values(b[i])
    for k = 1, #u do
      local fits = math.abs(u[k] - v[k]) <= tol * math.max(1, math.abs(u[k]))
      assert.is_true(fits, ("tensor %d, element %d: %.9g, %.9g"):format(i, k, u[k], v[k]))
    end
  end
end

local shapes = {{5}, {}, {3, 4}, {0}, {1025}, {40, 30}}

describe("optimiser steps", function()
  for i, step in ipairs(steps) do
    it(name(i) .. ": f32 agrees with f64", function()
      local a, b = operands(step, shapes), operands(step, shapes)
      for k, x in ipairs(b) do b[k] = x:to("f64") end
      near(run(step, b, #shapes), run(step, a, #shapes), 2e-5)
    end)

    it(name(i) .. ": 16-bit gradients are read as they are", function()
      for _, dtype in ipairs {"f16", "bf16"} do
        local a, b = operands(step, shapes, {grad = dtype}), operands(step, shapes, {grad = dtype})
        for k = #shapes + 1, 2 * #shapes do b[k] = b[k]:float() end
        run(step, a, #shapes)
        run(step, b, #shapes)
        for k = 1, #a do
          if k <= #shapes or k > 2 * #shapes then assert.equal(b[k]:tobytes(), a[k]:tobytes()) end
        end
      end
    end)

    it(name(i) .. ": 16-bit parameters are rounded once, their state is f32", function()
      for _, dtype in ipairs {"f16", "bf16"} do
        local a, b = operands(step, shapes, {dtype = dtype}), operands(step, shapes, {dtype = dtype})
        for k = 1, #shapes do b[k] = b[k]:float() end
        run(step, a, #shapes)
        run(step, b, #shapes)
        for k = 1, #shapes do b[k] = b[k]:to(dtype) end
        same(b, a)
      end
    end)

    it(name(i) .. ": a 16-bit copy is the rounded parameter", function()
      for _, dtype in ipairs {"f16", "bf16"} do
        local a, b = operands(step, shapes, {low = dtype}), operands(step, shapes)
        run(step, a, #shapes)
        run(step, b, #shapes)
        for k = 1, #b do assert.equal(b[k]:tobytes(), a[k]:tobytes()) end
        for k = 1, #shapes do assert.equal(a[k]:to(dtype):tobytes(), a[#b + k]:tobytes()) end
      end
    end)

    it(name(i) .. ": layouts do not matter", function()
      local a, b = operands(step, {{33, 65}}, {layout = "transposed"}), operands(step, {{33, 65}})
      assert.is_false(a[1]:is_contiguous())
      near(run(step, b, 1), run(step, a, 1), step[1] == "lamb_step" and 1e-6 or 0)
    end)

    it(name(i) .. ": threads do not matter", function()
      local big = {{70001}, {3}, {300, 301}}
      local threads = ampl.get_num_threads()
      ampl.set_num_threads(1)
      local a = run(step, operands(step, big), #big)
      ampl.set_num_threads(3)
      local b = run(step, operands(step, big), #big)
      ampl.set_num_threads(threads)
      same(a, b)
    end)

    it(name(i) .. ": inv_scale divides, found_inf leaves everything alone", function()
      local a, b = operands(step, shapes), operands(step, shapes)
      for k = #shapes + 1, 2 * #shapes do a[k]:mul_(64) end
      run(step, a, #shapes, {inv_scale = ampl.full({}, 1 / 64), found_inf = ampl.zeros({})})
      run(step, b, #shapes)
      for k = #shapes + 1, 2 * #shapes do a[k]:div_(64) end
      same(b, a)
      local c = operands(step, shapes)
      local version = c[1]._version
      same(operands(step, shapes), run(step, c, #shapes, {found_inf = ampl.ones({})}))
      assert.equal(version, c[1]._version)
    end)
  end

  it("raise the versions of what they write", function()
    local a = operands(steps[5], {{2}}, {low = "bf16"})
    local before = {}
    for k, x in ipairs(a) do before[k] = x._version end
    run(steps[5], a, 1)
    for k, x in ipairs(a) do assert.equal(k ~= 2, x._version ~= before[k]) end
  end)

  it("take a long list of parameters", function()
    local many = {}
    for k = 1, 300 do many[k] = {k % 7} end
    local a = run(steps[5], operands(steps[5], many), #many)
    local b = {}
    for k = 1, #many do
      local one = operands(steps[5], many)
      local own = {}
      for l = 0, 4 do own[l + 1] = one[l * #many + k] end
      if k % 50 == 1 then b[#b + 1] = {k, run(steps[5], own, 1)[1]} end
    end
    for _, e in ipairs(b) do assert.equal(a[e[1]]:tobytes(), e[2]:tobytes()) end
  end)

  it("say what is wrong", function()
    local function fails(code, text, change)
      local a = operands(steps[5], {{2}, {3}})
      local n = change(a) or 2
      local ok, e = pcall(run, steps[5], a, n)
      assert.is_false(ok)
      assert.equal(code, e.code)
      assert.matches(text, e.message)
    end
    fails("EARG", "3 parameters need 15 tensors", function() return 3 end)
    fails("ESHAPE", "parameter 2 is f32 {3}, its gradient f32 {4}", function(a) a[4] = ampl.zeros(4) end)
    fails("EDTYPE", "the gradient of parameter 1 is f64", function(a) a[3] = a[3]:double() end)
    fails("EDTYPE", "the state of parameter 1 is f16; it must be f32", function(a) a[5] = a[5]:half() end)
    fails("EDTYPE", "the dtype of parameter 1 is i64", function(a) a[1] = ampl.tensor({1, 2}) end)
    fails("EARG", "the count of parameter 2", function(a) a[10] = ampl.zeros(3) end)
  end)
end)
