-- Every layer and loss against PyTorch's numbers: state, forward, backward.  golden/modules/README.md describes the
-- cases.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"
local tally = require("spec.support.tally")("golden modules")
local reason = require "spec.support.pending"

local folder, missing = folders.golden("modules", "cases.jsonl")
local SCALE = 2.0 ^ -10                 -- what a reference that is zero but for rounding is measured against

local function class(name)
  local ok, c = pcall(function() return ampl.nn[name] end)
  return ok and c or nil
end

local function run_type(t, dtype) return tensors.floats[t.dtype] and t:to(dtype) or t end

-- A module of the case, or nil and the name of what is missing.
local function construct(name, args, opts, refs, dtype)
  local c = class(name)
  if not c then return nil, name end
  local list, n = {}, #args
  for i, a in ipairs(args) do
    if type(a) == "table" and a.module then
      local m, lacks = construct(a.module, a.args, a.opts, refs, dtype)
      if not m then return nil, lacks end
      a = m
    end
    list[i] = json.number(a)
  end
  if name == "ModuleList" then list, n = {list}, 1 end
  if next(opts) then
    local given = {}
    for k, v in pairs(opts) do
      if v == json.null then v = false end      -- "none", where nil would mean the default
      if type(v) == "table" and v.module then
        local m, lacks = construct(v.module, v.args, v.opts, refs, dtype)
        if not m then return nil, lacks end
        given[k] = m
      else
        given[k] = type(v) == "table" and v.t and run_type(refs[v.t], dtype) or json.number(v)
      end
    end
    n = n + 1
    list[n] = given
  end
  return c(table.unpack(list, 1, n))
end

-- The arguments of the call; `leaves` gets {tensor, key of its gradient}.
local function call_arguments(case, refs, dtype, leaves)
  local function one(a)
    if a == json.null then return nil end
    if a[1] then
      local out = {}
      for i, e in ipairs(a) do out[i] = one(e) end
      return out
    end
    local t = run_type(refs[a.t], dtype):clone()
    if type(a.grad) == "string" then
      t:requires_grad_(true)
      leaves[#leaves + 1] = {t, a.grad}
    end
    return t
  end

  local list, n = {}, #case.inputs
  for i, a in ipairs(case.inputs) do list[i] = one(a) end
  if next(case.call_opts) then
    local opts = {}
    for k, v in pairs(case.call_opts) do
      opts[k] = type(v) == "table" and v.t and run_type(refs[v.t], dtype) or v
    end
    n = n + 1
    list[n] = opts
  end
  return list, n
end

-- Compares results with the case's outputs; collects {tensor, cotangent}.
local function check_outputs(want, got, refs, dtype, tol, roots, name)
  for i, w in ipairs(want) do
    local label = ("%s %d"):format(name, i)
    if w == json.null then
      if got[i] ~= nil then return label .. ": expected nil" end
    elseif w[1] then
      if type(got[i]) ~= "table" then return label .. ": expected a table" end
      local why = check_outputs(w, got[i], refs, dtype, tol, roots, label .. ",")
      if why then return why end
    else
      local ref = run_type(refs[w.t], dtype)
      local why = tensors.compare(got[i], refs[w.t], ref.dtype, tol, SCALE)
      if why then return label .. ": " .. why end
      if type(w.cot) == "string" and got[i].requires_grad then
        roots[#roots + 1] = {got[i], run_type(refs[w.cot], dtype)}
      end
    end
  end
end

local function check_gradients(leaves, roots, refs, dtype, tol)
  local outs, cots, inputs = {}, {}, {}
  for i, r in ipairs(roots) do outs[i], cots[i] = r[1], r[2] end
  for i, l in ipairs(leaves) do inputs[i] = l[1] end
  local grads = table.pack(ampl.grad(outs, inputs, {grad_outputs = cots, allow_unused = true}))
  for i, l in ipairs(leaves) do
    local why
    if l[2] == json.null then
      why = grads[i] and "expected no gradient"
    else
      why = tensors.compare(grads[i], refs[l[2]], dtype, tol, SCALE)
    end
    if why then return ("gradient of %s: %s"):format(l[3] or "input " .. i, why) end
  end
end

local function same_names(module, state)
  local names, got = {}, {}
  for name in pairs(state) do names[#names + 1] = name end
  for name in pairs(module:state_dict()) do got[#got + 1] = name end
  table.sort(names)
  table.sort(got)
  names, got = table.concat(names, " "), table.concat(got, " ")
  return names ~= got and ("state is called %s, expected %s"):format(got, names) or nil
end

-- nil when the case holds, else what is wrong; false and a name when a module is missing.
local function try(case, refs, dtype)
  local module, lacks = construct(case.module, case.args, case.opts, refs, dtype)
  if not module then return false, lacks end
  module:to(dtype)
  module[case.mode](module)
  local why = same_names(module, case.state)
  if why then return why end
  local state = {}
  for name, key in pairs(case.state) do state[name] = run_type(refs[key], dtype) end
  module:load_state_dict(state)
  if not case.inputs then return nil end
  local tol_out, tol_grad = case.tol[dtype], case.tol[dtype]
  if type(tol_out) == "table" then tol_out, tol_grad = tol_out.out, tol_out.grad end
  local leaves, roots = {}, {}
  local args, n = call_arguments(case, refs, dtype, leaves)
  local results = table.pack(module(table.unpack(args, 1, n)))
  why = check_outputs(case.outputs, results, refs, dtype, tol_out, roots, "output")
  if why then return why end
  local after = module:state_dict()
  for name, key in pairs(case.buffers_after) do
    why = tensors.compare(after[name], refs[key], nil, tol_out, SCALE)
    if why then return name .. " after the call: " .. why end
  end
  for name, p in module:named_parameters() do leaves[#leaves + 1] = {p, case.grad[name], name} end
  if #roots > 0 and #leaves > 0 then return check_gradients(leaves, roots, refs, dtype, tol_grad) end
end

describe("golden modules", function()
  if not folder then
    pending(reason("golden", missing))
    return
  end
  local refs
  setup(function() refs = assert(ampl.safetensors.load(folder .. "/tensors.safetensors")) end)
  teardown(function()
    refs = nil
    tally:report()
  end)
  for _, case in ipairs(json.lines(folder .. "/cases.jsonl")) do
    for _, dtype in ipairs {"f64", "f32"} do
      it(case.id .. " " .. dtype, function()
        local ok, why, lacks = pcall(try, case, refs, dtype)
        if ok and why == false then
          tally:skip("no such module", lacks)
          pending(reason("no_model", "nn." .. lacks))
        elseif ok and why == nil then
          tally:pass()
        else
          tally:fail()
          error(tostring(why), 0)
        end
      end)
    end
  end
end)
