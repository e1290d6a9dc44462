-- GradScaler through PyTorch's scripted events, and through those of the options PyTorch has not.
-- golden/scaler/README.md describes the events.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"
local tally = require("spec.support.tally")("golden scaler")
local reason = require "spec.support.pending"

local folder, missing = folders.golden("scaler", "cases.jsonl")

local function numbers(v)
  if type(v) ~= "table" or v == json.null then return json.number(v) end
  local out = {}
  for k, e in pairs(v) do out[k] = numbers(e) end
  return out
end

local function plain(v)                 -- tensors as numbers or lists of them
  if tensors.is(v) then
    local x = tensors.values(v)
    return v.ndim == 0 and x[1] or x
  end
  if type(v) ~= "table" then return v end
  local out = {}
  for k, e in pairs(v) do out[k] = plain(e) end
  return out
end

local function same(got, want, exact)
  if type(want) == "table" then
    if want == json.null then return got == nil end
    if type(got) ~= "table" then return false end
    for k, v in pairs(want) do
      if not same(got[k], v, exact) then return false end
    end
    return true
  end
  if type(want) ~= "number" or type(got) ~= "number" then return got == want end
  if want ~= want then return got ~= got end
  if exact or want == math.huge or want == -math.huge then return got == want end
  return math.abs(got - want) <= 1e-6 * math.max(math.abs(want), 1e-30)
end

local function show(v)
  if v == nil then return "nothing" end
  if type(v) ~= "table" then return tostring(v) end
  if v == json.null then return "null" end
  local parts = {}
  for k, e in pairs(v) do parts[#parts + 1] = type(k) == "number" and show(e) or k .. " = " .. show(e) end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- What a case works on, and a function for each kind of event.
local function stage(case)
  local P, O = {}, {}
  for name, v in pairs(case.params) do P[name] = ampl.tensor(numbers(v), {dtype = "f32", requires_grad = true}) end
  local function params(names)
    local list = {}
    for i, name in ipairs(names) do list[i] = P[name] end
    return list
  end
  for name, o in pairs(case.optimizers) do O[name] = ampl.optim[o.type](params(o.params), numbers(o.options)) end
  local S = ampl.amp.GradScaler(numbers(case.scaler))

  local events = {}
  function events.backward(e)
    local loss
    local names = {}
    for name in pairs(e.coef) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local term = (P[name] * ampl.tensor(numbers(e.coef[name]), {dtype = "f32"})):sum()
      loss = loss and loss + term or term
    end
    if e.divide then loss = loss / e.divide end
    if e.scaled == false then loss:backward() else S:scale(loss):backward() end
  end
  function events.zero_grad(e)
    for _, o in pairs(O) do o:zero_grad({set_to_none = e.set_to_none ~= false}) end
  end
  function events.unscale(e) S:unscale_(O[e.opt]) end
  function events.step(e) return "taken", (S:step(O[e.opt])) end
  function events.update(e)
    local new = numbers(e.new_scale)
    if new == json.null then new = nil end
    S:update(e.tensor and ampl.tensor(new, {dtype = "f32"}) or new)
  end
  function events.clip(e)
    return "value", ampl.nn.utils.clip_grad_norm_(params(e.params), json.number(e.max_norm),
                                                  {norm_type = json.number(e.norm_type)})
  end
  function events.clip_value(e) ampl.nn.utils.clip_grad_value_(params(e.params), json.number(e.value)) end
  function events.scale(e)
    local v = numbers(e.value)
    local x
    if type(v) == "table" and type(v[1]) == "table" then
      x = {}
      for i, t in ipairs(v) do x[i] = ampl.tensor(t, {dtype = "f32"}) end
    else
      x = ampl.tensor(v, {dtype = "f32"})
    end
    return "value", S:scale(x)
  end
  function events.state_dict() return "value", S:state_dict() end
  function events.load_state_dict(e) S:load_state_dict(numbers(e.state)) end
  function events.new_scaler(e) S = ampl.amp.GradScaler(numbers(e.options)) end
  function events.set(e) S["set_" .. e.what](S, json.number(e.value)) end
  function events.get(e) return "value", S["get_" .. e.what](S) end
  function events.is_enabled() return "value", S:is_enabled() end
  return events, P, function() return S end
end

local function check(label, got, want, exact)
  got = plain(got)
  if not same(got, numbers(want), exact) then
    error(("%s: %s, expected %s"):format(label, show(got), show(want)), 0)
  end
end

local function replay(case)
  local events, P, scaler = stage(case)
  for i, e in ipairs(case.events) do
    local want = {}
    for k, v in pairs(e.expect) do want[k] = v end
    for k, v in pairs(e.ampl or {}) do want[k] = v end
    local label = ("event %d (%s)"):format(i, e["do"])
    local ok, field, got = pcall(events[e["do"]], e)
    if ok == want.error then
      error(("%s: %s"):format(label, ok and "raised nothing" or "raised " .. tostring(field)), 0)
    end
    if ok and field and want[field] ~= nil and want[field] ~= json.null then
      check(label .. ": " .. field, got, want[field], case.exact)
    end
    check(label .. ": scale", scaler():get_scale(), want.scale, case.exact)
    check(label .. ": growth tracker", scaler():get_growth_tracker(), want.tracker, case.exact)
    for name, p in pairs(P) do
      check(("%s: parameter %s"):format(label, name), p, want.param[name], case.exact)
      check(("%s: gradient of %s"):format(label, name), p.grad, want.grad[name], case.exact)
    end
  end
end

describe("golden scaler", function()
  if not folder then
    pending(reason("golden", missing))
    return
  end
  teardown(function() tally:report() end)
  for _, file in ipairs {"cases.jsonl", "cases_ext.jsonl"} do
    for _, case in ipairs(json.lines(folder .. "/" .. file)) do
      it(case.id, function()
        if not (ampl.amp and ampl.amp.GradScaler) then
          tally:skip("there is no amp.GradScaler")
          pending(reason("no_model", "amp.GradScaler"))
        end
        local ok, why = pcall(replay, case)
        if not ok and case.advisory then
          tally:skip("advisory: an odd corner of PyTorch", case.id)
          pending(reason("corner", why))
        end
        if ok then tally:pass() else tally:fail() end
        assert(ok, why)
      end)
    end
  end
end)
