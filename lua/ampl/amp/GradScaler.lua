-- GradScaler: scales the loss up, so that small gradients survive 16 bits, and the gradients down again; skips steps
-- whose gradients overflowed and finds the scale by that.  The state machine is C (core/scaler.c); here are optimisers
-- and closures.
--
--   scaler:scale(loss):backward()
--   scaler:step(optimizer)
--   scaler:update()

local core = require "ampl.core"
local Class = require "ampl.class"
local args = require "ampl.args"
local listing = require "ampl.listing"
local raise = require "ampl.raise"

---@class ampl.amp.GradScaler : ampl.Class
---@overload fun(options?: table): ampl.amp.GradScaler
local GradScaler = Class:extend("GradScaler")

GradScaler.params = {
  {"device", "string?"},                                -- for scripts that name one: the scale lives where the loss is
  {"init_scale", "number", 65536.0}, {"growth_factor", "number", 2.0}, {"backoff_factor", "number", 0.5},
  {"growth_interval", "integer", 2000}, {"enabled", "boolean", true},
  {"min_scale", "number", 2.0 ^ -126}, {"max_scale", "number", 2.0 ^ 127}, {"hysteresis", "integer", 1},
  {"max_consecutive_skips", "integer?"}, {"on_floor", "string", "warn", choices = {"warn", "raise", "keep"}},
  {"retry", "integer", 0, min = 0},
}
local signature = args.signature("GradScaler", GradScaler.params)

---@param ... any options: init_scale, growth_factor, backoff_factor, growth_interval, enabled, min_scale, max_scale,
---hysteresis, max_consecutive_skips, on_floor, retry
function GradScaler:init(...)
  local o = signature(...)
  self.retry = o.retry
  o.retry, o.device = nil, nil
  self.enabled = o.enabled
  self.handle = core.scaler(o)
  -- By optimiser; a dead one's entries go with it.
  self.keys = setmetatable({}, {__mode = "k"})
  self.outcome = setmetatable({}, {__mode = "k"})       -- whether its last step was taken
end

-- What the handle needs of an optimiser: its key, its parameters in order, and their names where the groups have them.
local function describe(self, op, optimizer)
  local groups = type(optimizer) == "table" and optimizer.param_groups
  if type(groups) ~= "table" or not optimizer.step then
    raise("EARG", op, ("takes an optimizer, a table with param_groups and step, not %s"):format(args.shown(optimizer)))
  end
  local key = self.keys[optimizer]
  if not key then
    key = self.handle:key()
    self.keys[optimizer] = key
  end
  local params, names = {}, {}
  for _, group in ipairs(groups) do
    for i, p in ipairs(group.params) do
      params[#params + 1] = p
      names[#params] = group.param_names and group.param_names[i] or false
    end
  end
  return key, params, names
end

---The loss times the scale, in f32 at least; of a list, a list.
---@param loss ampl.Tensor|table
---@return ampl.Tensor|table
function GradScaler:scale(loss)
  if type(loss) ~= "table" then return self.handle:scale(loss) end
  local out = {}
  for i, x in ipairs(loss) do out[i] = self:scale(x) end
  return out
end

---Divides the gradients by the scale before the step, so that they can be clipped.
---@param optimizer table
function GradScaler:unscale_(optimizer)
  self.handle:unscale(describe(self, "unscale_", optimizer))
end

local Skip = {}                         -- what leaves the optimiser when an evaluation overflows

-- Copies of what an optimiser may have moved before a later evaluation overflows.
local function snapshot(params)
  local _ <close> = core.enter_grad(false)
  local out = {}
  for i, p in ipairs(params) do out[i] = p:detach():clone() end
  return out
end

local function restore(params, saved)
  local _ <close> = core.enter_grad(false)
  for i, p in ipairs(params) do p:detach():copy_(saved[i]) end
end

-- Our optimisers evaluate once, before they move anything, unless they bring a step of their own.
local function evaluates_once(optimizer)
  return optimizer.step == require("ampl.optim.Optimizer").step
end

-- Remembers how a step ended and returns that.
local function ended(self, optimizer, taken, result)
  self.outcome[optimizer] = taken
  return taken, result
end

local function step_with_closure(self, optimizer, closure)
  local handle = self.handle
  local key, params, names = describe(self, "step", optimizer)
  local retries, evaluations, saved, loss = self.retry, 0, nil, nil
  handle:again(key)                     -- raises when it was stepped already

  local function evaluate(...)
    evaluations = evaluations + 1
    if evaluations > 1 then handle:again(key, params, false) end
    while true do
      loss = closure(...)
      handle:unscale(key, params, names)
      if not handle:found(key) then break end
      if retries == 0 then error(Skip, 0) end
      retries = retries - 1
      handle:again(key, params, true)
    end
    if evaluations == 1 and not evaluates_once(optimizer) then saved = snapshot(params) end
    return loss
  end

  local ok, result = pcall(optimizer.step, optimizer, evaluate)
  if ok then
    handle:stepped(key)
    return ended(self, optimizer, true, result)
  end
  if result ~= Skip then error(result, 0) end
  if saved then restore(params, saved) end
  handle:skip(key, params, names)
  return ended(self, optimizer, false, loss)
end

---Steps the optimiser, unless a gradient holds an inf or a NaN.
---
---A closure runs forward and the scaled backward and returns the unscaled loss.  Its gradients are unscaled after each
---call; a bad one ends the step as skipped (the parameters are as before), or, with `retry`, runs the closure again at
---the lower scale.
---@param optimizer table a table with param_groups and step
---@param closure? fun(): ampl.Tensor
---@return boolean taken
---@return any result what the optimiser's step returned
function GradScaler:step(optimizer, closure)
  if closure ~= nil and type(closure) ~= "function" then
    raise("EARG", "step", ("the closure must be a function, not %s"):format(args.shown(closure)))
  end
  if closure and self.enabled then return step_with_closure(self, optimizer, closure) end
  local key, params, names = describe(self, "step", optimizer)
  if not self.handle:allowed(key, params, names) then return (ended(self, optimizer, false)) end
  local result = optimizer:step(closure)
  self.handle:stepped(key)
  return ended(self, optimizer, true, result)
end

---Whether the optimiser may step; counts as its step.  For those who step later, by themselves.
---@param optimizer table
---@return boolean
function GradScaler:verdict(optimizer)
  local key, params, names = describe(self, "step", optimizer)
  local allowed = self.handle:allowed(key, params, names)
  if allowed then self.handle:stepped(key) end
  return (ended(self, optimizer, allowed))
end

---Whether the optimiser's last step was taken, also before its first one: what a scheduler asks.
---@param optimizer table
---@return boolean
function GradScaler:step_taken(optimizer) return self.outcome[optimizer] ~= false end

---Ends the iteration: the scale backs off after an overflow, and grows after growth_interval iterations without one.
---@param new_scale? number|ampl.Tensor a scale to go on with; the growth tracker starts over
function GradScaler:update(new_scale)
  if type(new_scale) == "userdata" then
    if new_scale:numel() ~= 1 then
      raise("ESHAPE", "update", ("new_scale has one element, not %d"):format(new_scale:numel()))
    end
    new_scale = new_scale:item()
  end
  if new_scale ~= nil and type(new_scale) ~= "number" then
    raise("EARG", "update", ("new_scale must be a number or a tensor of one, not %s"):format(args.shown(new_scale)))
  end
  self.handle:update(new_scale)
end

---@return number
function GradScaler:get_scale() return self.handle:get_scale() end

---@return boolean
function GradScaler:is_enabled() return self.enabled end

---@return integer iterations without an overflow since the scale last changed
function GradScaler:get_growth_tracker()
  return self.enabled and self.handle:state()._growth_tracker or 0
end

for _, name in ipairs {"growth_factor", "backoff_factor", "growth_interval"} do
  GradScaler["get_" .. name] = function(self) return self.handle:options()[name] end
  GradScaler["set_" .. name] = function(self, value)
    if type(value) ~= "number" then
      raise("EARG", "set_" .. name, ("takes a number, not %s"):format(args.shown(value)))
    end
    self.handle:set_option(name, value)
  end
end

---PyTorch's five keys (scale, growth_factor, backoff_factor, growth_interval, _growth_tracker), and ours:
---_hysteresis_left, taken, skipped, calibrating, consecutive_skips.  Empty when disabled.
---@return table
function GradScaler:state_dict()
  return listing(self.enabled and self.handle:state() or {})
end

---@param state table of state_dict; our keys may be missing
function GradScaler:load_state_dict(state)
  if type(state) ~= "table" then
    raise("EARG", "load_state_dict", ("takes a table, not %s"):format(args.shown(state)))
  end
  if not self.enabled then return end
  if next(state) == nil then
    raise("EVALUE", "load_state_dict", "the state is empty: it was saved from a disabled scaler")
  end
  self.handle:set_state(state)
end

---Steps taken and skipped so far.  `calibrating` are the skips before the first step taken, while the scale came down.
---last_skip, after a skip, is {step, parameter, index, scale}: which step it was, from 1, the first parameter with an
---inf or a NaN in its gradient (its name, where the optimizer's groups have param_names, else its place), its place
---among the optimizer's parameters, and the scale then.
---@return {taken: integer, skipped: integer, calibrating: integer, consecutive_skips: integer, last_skip: table?}
function GradScaler:stats() return self.handle:stats() end

function GradScaler:__tostring()
  if not self.enabled then return "GradScaler (disabled)" end
  local o, s = self.handle:options(), self:stats()
  return ("GradScaler (scale = %g, growth_factor = %g, backoff_factor = %g, growth_interval = %d; %d steps taken, "
    .. "%d skipped)"):format(self:get_scale(), o.growth_factor, o.backoff_factor, o.growth_interval, s.taken, s.skipped)
end

return GradScaler
