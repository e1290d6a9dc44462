-- Ten steps of every optimiser against PyTorch's numbers (Lion and LAMB: their papers).  golden/optim/README.md
-- describes the cases.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"
local tally = require("spec.support.tally")("golden optim")
local reason = require "spec.support.pending"

local folder, missing = folders.golden("optim", "cases.jsonl")

local function make(name, ...)
  local ok, class = pcall(function() return ampl.optim[name] end)
  if not ok or not class then return nil end
  return class(...)
end

local function numbers(t)
  local out = {}
  for k, v in pairs(t) do out[k] = type(v) == "table" and numbers(v) or json.number(v) end
  return out
end

local function group_of(g, params)
  local out = numbers(g)
  out.params = {}
  for i, k in ipairs(g.params) do out.params[i] = params[k] end
  return out
end

local function groups_of(case, params)
  local groups = {}
  for i, g in ipairs(case.groups) do groups[i] = group_of(g, params) end
  return groups
end

-- Rows s of the references, and what the parameters are: the worst, measured over all steps at once as the gap was.
local function compare_history(history, refs, keys, tol)
  for k, key in ipairs(keys) do
    local why = tensors.compare_values(history[k], tensors.values(refs[key]), refs[key].shape, tol)
    if why then return ("parameter %d %s"):format(k, why) end
  end
end

local function record(history, params)
  for k, p in ipairs(params) do
    local v = tensors.values(p)
    table.move(v, 1, #v, #history[k] + 1, history[k])
  end
end

local function without(list, s)
  for _, at in ipairs(list or {}) do
    if at == s then return true end
  end
  return false
end

-- PyTorch's state of a parameter, where ours has a field of that name.
local function check_state(case, opt, params, refs, tol)
  local state = opt.state
  if type(state) ~= "table" then return "opt.state is no table" end
  for k, want in ipairs(case.state) do
    local got = state[params[k]] or {}
    for name, v in pairs(want) do
      local have, why = got[name], nil
      if have == nil then return ("parameter %d: no state %s"):format(k, name) end
      if type(v) == "table" then
        why = tensors.compare(have, refs[v.t], nil, tol)
      else
        local x = tensors.is(have) and have:item() or have
        if math.abs(x - v) > tol * math.max(1, math.abs(v)) then why = ("%g, expected %g"):format(x, v) end
      end
      if why then return ("parameter %d, state %s: %s"):format(k, name, why) end
    end
  end
end

local function replay(case, refs, dtype, reload)
  local params, grads, history, numbered = {}, {}, {}, case.no_grad
  for k, key in ipairs(case.params) do
    params[k] = refs[key]:to(dtype):clone():requires_grad_(true)
    grads[k] = refs[case.grads[k]]:to(dtype)
    history[k] = {}
  end
  local options = numbers(case.options)
  local opt = make(case.optimizer, groups_of(case, params), options)
  if not opt then return false end
  for s = 1, 10 do
    if case.add_group and case.add_group.before_step == s then
      opt:add_param_group(group_of(case.add_group.group, params))
    end
    if case.set_lr and case.set_lr.before_step == s then
      for i, lr in ipairs(case.set_lr.lr) do opt.param_groups[i].lr = lr end
    end
    for k, p in ipairs(params) do
      p.grad = nil
      if not without(numbered[tostring(k)], s) then p.grad = grads[k]:select(1, s):clone() end
    end
    opt:step()
    record(history, params)
    if reload and case.reload_after == s then
      local state = opt:state_dict()
      opt = make(case.optimizer, groups_of(case, params), options)
      if case.add_group and case.add_group.before_step <= s then
        opt:add_param_group(group_of(case.add_group.group, params))
      end
      opt:load_state_dict(state)
    end
  end
  local tol = case.tol[dtype]
  return compare_history(history, refs, case.after, tol) or check_state(case, opt, params, refs, tol * 10)
end

local function lbfgs(case, refs, dtype)
  local x = refs[case.params[1]]:to(dtype):clone():requires_grad_(true)
  local y = refs[case.params[2]]:to(dtype):clone():requires_grad_(true)
  local A, b = refs[case.A]:to(dtype), refs[case.b]:to(dtype)
  local function objective()
    local quadratic = (x * A:matmul(x)):sum() * 0.5 - (b * x):sum()
    return quadratic + (y[2] - y[1] ^ 2) ^ 2 * 100 + (1 - y[1]) ^ 2
  end
  local opt = make("LBFGS", {x, y}, numbers(case.options))
  if not opt then return false end
  local function closure()
    opt:zero_grad()
    local loss = objective()
    loss:backward()
    return loss
  end
  local history, tol = {{}, {}}, case.tol[dtype]
  for s = 1, 5 do
    local loss = opt:step(closure)
    loss = tensors.is(loss) and loss:item() or loss
    local scale = math.max(1e-6, math.abs(case.loss[1]))
    if math.abs(loss - case.loss[s]) > tol * scale then
      return ("step %d: loss %.17g, expected %.17g"):format(s, loss, case.loss[s])
    end
    record(history, {x, y})
  end
  return compare_history(history, refs, case.after, tol)
end

describe("golden optim", function()
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
  local function check(case, f, ...)
    local ok, why = pcall(f, case, refs, ...)
    if ok and why == false then
      tally:skip("no such optimiser", case.optimizer)
      pending(reason("no_model", "optim." .. case.optimizer))
    elseif ok and why == nil then
      tally:pass()
    else
      tally:fail()
      error(tostring(why), 0)
    end
  end
  for _, case in ipairs(json.lines(folder .. "/cases.jsonl")) do
    local run = case.optimizer == "LBFGS" and lbfgs or replay
    for _, dtype in ipairs {"f64", "f32"} do
      it(case.id .. " " .. dtype, function() check(case, run, dtype) end)
    end
    if case.reload_after then
      it(case.id .. " saved and loaded", function() check(case, run, "f64", true) end)
    end
  end
end)
