-- Learning rates of every scheduler over 60 steps against PyTorch's.  golden/sched/README.md describes the cases.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tally = require("spec.support.tally")("golden sched")
local reason = require "spec.support.pending"

local folder, missing = folders.golden("sched", "cases.jsonl")

local function class(name)
  local ok, c = pcall(function() return ampl.optim.lr_scheduler[name] end)
  return ok and c or nil
end

local function lambda(text) return assert(load("local e = ...; return " .. text)) end

local function numbers(t)
  local out = {}
  for k, v in pairs(t) do out[k] = type(v) == "table" and numbers(v) or json.number(v) end
  return out
end

-- The scheduler, or nil and what is missing.
local function make(name, options, opt)
  local c = class(name)
  if not c then return nil, name end
  local o = numbers(options)
  if o.lr_lambda then
    local l = o.lr_lambda
    if type(l) == "table" then
      for i, text in ipairs(l) do l[i] = lambda(text) end
    else
      o.lr_lambda = lambda(l)
    end
  end
  if not o.schedulers then return c(opt, o) end
  local list = {}
  for i, s in ipairs(options.schedulers) do
    local inner, lacks = make(s[1], s[2], opt)
    if not inner then return nil, lacks end
    list[i] = inner
  end
  if name == "ChainedScheduler" then return c(list) end
  o.schedulers = nil
  return c(opt, list, o)
end

local function optimizer(case)
  local groups = {}
  for i, lr in ipairs(case.lr) do
    groups[i] = {params = {ampl.ones({1}, {dtype = "f64", requires_grad = true})}, lr = lr}
  end
  local options = numbers(case.optimizer_options)
  options.lr = case.lr[1]
  return ampl.optim[case.optimizer](groups, options)
end

local function momentum(g) return g.betas and g.betas[1] or g.momentum end

local function check(case, opt, step)
  local lrs = step == 0 and case.lr_start or case.lr_after[step]
  local scale = 1e-300
  for _, row in ipairs(case.lr_after) do
    for _, lr in ipairs(row) do scale = math.max(scale, math.abs(lr)) end
  end
  for i, lr in ipairs(lrs) do
    local got = opt.param_groups[i].lr
    if not (math.abs(got - lr) <= 1e-12 * scale) then       -- luacheck: ignore 581
      error(("step %d, group %d: lr %.17g, expected %.17g"):format(step, i, got, lr), 0)
    end
  end
  local momenta = step == 0 and case.momentum_start or case.momentum_after and case.momentum_after[step]
  for i, m in ipairs(momenta or {}) do
    local got = momentum(opt.param_groups[i])
    if math.abs(got - m) > 1e-12 then
      error(("step %d, group %d: momentum %.17g, expected %.17g"):format(step, i, got, m), 0)
    end
  end
end

-- With `reload_at`, the scheduler and the optimiser are saved and loaded into fresh ones after that step.
local function replay(case, reload_at)
  local opt = optimizer(case)
  local sched, lacks = make(case.scheduler, case.options, opt)
  if not sched then return lacks end
  check(case, opt, 0)
  for s = 1, case.steps do
    opt:step()
    if case.metric then sched:step(json.number(case.metric[s])) else sched:step() end
    check(case, opt, s)
    if s == reload_at then
      local state, opt_state = sched:state_dict(), opt:state_dict()
      opt = optimizer(case)
      sched = make(case.scheduler, case.options, opt)
      opt:load_state_dict(opt_state)
      sched:load_state_dict(state)
    end
  end
end

describe("golden sched", function()
  if not folder then
    pending(reason("golden", missing))
    return
  end
  teardown(function() tally:report() end)
  for _, case in ipairs(json.lines(folder .. "/cases.jsonl")) do
    for _, reload_at in ipairs {0, 7, 31} do
      it(case.id .. (reload_at > 0 and " saved and loaded after step " .. reload_at or ""), function()
        local ok, lacks = pcall(replay, case, reload_at)
        if ok and lacks then
          tally:skip("no such scheduler", lacks)
          pending(reason("no_model", lacks))
        elseif ok then
          tally:pass()
        else
          tally:fail()
          error(lacks, 0)
        end
      end)
    end
  end
end)
