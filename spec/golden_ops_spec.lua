-- Every op against PyTorch's numbers: outputs and gradients, in f64, f32, bf16 and f16, and with other strides.
-- golden/ops/README.md describes the cases.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"
local tally = require("spec.support.tally")("golden ops")
local reason = require "spec.support.pending"

local folder, missing = folders.golden("ops", "cases.jsonl")
local LISTS = {split = true, chunk = true, unbind = true}
local NO_LAYOUT = {view = true}         -- refuses some strides by nature

-- The function a case calls; nil where there is none.
local function callable(case)
  local op, via = case.op, case.via
  if via == "index" then return function(x, key) return x[key] end end
  if via == "newindex" then
    return function(x, key, v)
      local y = x:clone()
      y[key] = v
      return y
    end
  end
  local F = ampl.nn and ampl.nn.functional
  local method = ampl.zeros(1)[op]
  if via == "method" then return method end
  if via == "F" then return F and F[op] end
  return ampl[op] or F and F[op] or method
end

-- A case's operands in the dtype and layout of a run; `leaves` gets those with a gradient, by path.
local function operands(case, refs, run, leaves)
  local function tensor(key, path)
    local t = refs[key]
    if tensors.floats[t.dtype] then t = t:to(run.dtype) end
    t = t:clone()
    if not NO_LAYOUT[case.op] then t = tensors.lay_out(t, run.layout, ampl) end
    if case.grad and case.grad[path] then
      t = t:detach():requires_grad_(true)
      leaves[path] = t
    end
    return t
  end

  local function operand(a, path)
    local kind, v = next(a)
    if kind == "t" then return tensor(v, path) end
    if kind == "n" then return json.number(v) end
    if kind ~= "l" then return v end
    local out = {}
    for i, e in ipairs(v) do out[i] = operand(e, path .. "." .. i) end
    return out
  end

  local args, n = {}, #case.args
  for i, a in ipairs(case.args) do args[i] = operand(a, tostring(i)) end
  local opts
  if case.opts then
    opts, n = {}, n + 1
    for k, v in pairs(case.opts) do
      if type(v) == "table" and v.t then v = tensor(v.t, k)
      elseif type(v) == "table" and v.n then v = json.number(v.n)
      elseif k == "dtype" and v == "run" then v = run.dtype end
      opts[k] = v
    end
    args[n] = opts
  end
  return args, n, opts
end

local function result_dtype(case, i, run) return case.dt[i] == "run" and run.dtype or case.dt[i] end

local function check_gradients(case, refs, run, leaves, results)
  local outs, cots, inputs, paths = {}, {}, {}, {}
  for i, key in ipairs(case.cot) do
    if key ~= json.null then
      outs[#outs + 1] = results[i]
      cots[#cots + 1] = refs[key]:to(result_dtype(case, i, run))
    end
  end
  for path in pairs(case.grad) do paths[#paths + 1] = path end
  table.sort(paths)
  for i, path in ipairs(paths) do inputs[i] = leaves[path] end
  local grads = table.pack(ampl.grad(outs, inputs, {grad_outputs = cots, allow_unused = true}))
  for i, path in ipairs(paths) do
    local why = tensors.compare(grads[i], refs[case.grad[path]], run.dtype, case.tol[run.dtype].grad)
    if why then return "gradient of " .. path .. ": " .. why end
  end
end

-- nil when the case holds, else what is wrong.
local function try(case, refs, run)
  local leaves = {}
  local args, n, opts = operands(case, refs, run, leaves)
  local f = callable(case)
  local results = table.pack(f(table.unpack(args, 1, n)))
  if results.n == 1 and LISTS[case.op] and not tensors.is(results[1]) then
    results = table.pack(table.unpack(results[1]))
  end
  if results.n ~= #case.out then return ("%d results, expected %d"):format(results.n, #case.out) end
  local tol = case.tol[run.dtype]
  for i, key in ipairs(case.out) do
    local why = tensors.compare(results[i], refs[key.t], result_dtype(case, i, run), tol.out)
    if why then return ("output %d: %s"):format(i, why) end
  end
  for name, key in pairs(case.after or {}) do
    local why = tensors.compare(opts[name], refs[key], run.dtype, tol.out)
    if why then return name .. " after the call: " .. why end
  end
  if case.grad then return check_gradients(case, refs, run, leaves, results) end
end

local RUNS = {
  {dtype = "f64", layout = "contiguous"}, {dtype = "f32", layout = "contiguous"},
  {dtype = "bf16", layout = "contiguous"}, {dtype = "f16", layout = "contiguous"},
  {dtype = "f32", layout = "transposed"}, {dtype = "f32", layout = "sliced"}, {dtype = "f32", layout = "channels_last"},
}

local function run_op(cases, refs, run)
  local failures = {}
  for _, case in ipairs(cases) do
    if not case.tol[run.dtype] then
      tally:skip("no reference in this dtype", run.dtype)
    else
      local ok, why = pcall(try, case, refs, run)
      if ok and why == nil then
        tally:pass()
      else
        tally:fail()
        failures[#failures + 1] = ("%s %s %s: %s"):format(case.id, run.dtype, run.layout, tostring(why))
      end
    end
  end
  collectgarbage()
  local shown = table.concat(failures, "\n", 1, math.min(#failures, 3))
  assert(#failures == 0, ("%d of %d cases:\n%s"):format(#failures, #cases, shown))
end

describe("golden ops", function()
  if not folder then
    pending(reason("golden", missing))
    return
  end
  local order, by_name = {}, {}
  for _, case in ipairs(json.lines(folder .. "/cases.jsonl")) do
    local name = case.op .. ((case.via == "F" or case.via == "method") and " (" .. case.via .. ")" or "")
    if not by_name[name] then
      by_name[name] = {}
      order[#order + 1] = name
    end
    table.insert(by_name[name], case)
  end
  local refs
  setup(function() refs = assert(ampl.safetensors.load(folder .. "/tensors.safetensors")) end)
  teardown(function()
    refs = nil
    tally:report()
  end)
  for _, name in ipairs(order) do
    local cases = by_name[name]
    if callable(cases[1]) then
      for _, run in ipairs(RUNS) do
        it(("%s %s %s"):format(name, run.dtype, run.layout), function() run_op(cases, refs, run) end)
      end
    else
      it(name, function()
        for _ = 1, #cases * #RUNS do tally:skip("no such op", name) end
        pending(reason("no_op", name))
      end)
    end
  end
end)
