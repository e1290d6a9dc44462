-- initialize, scale_loss, master_params: mixed precision by levels, for scripts that were written that way.
--
--   model, opt = amp.initialize(model, opt, {opt_level = "O2"})
--   amp.scale_loss(loss, opt, function(scaled) scaled:backward() end)
--   opt:step()
--
--   O0  f32                        O1  autocast around the model's forward
--   O2  a 16-bit model with f32 batch norms, f32 masters in the optimiser
--   O3  a 16-bit model, no masters
--
-- With O2 the optimiser goes on with the f32 tensors that it had, the masters; the model gets 16-bit ones, which are
-- written after each step.  What else writes either of the two is found by versions before it matters, and handed on to
-- the other: see masters.lua.

local core = require "ampl.core"
local autocast = require "ampl.amp.autocast"
local cast = require "ampl.amp.cast"
local masters = require "ampl.amp.masters"
local GradScaler = require "ampl.amp.GradScaler"
local args = require "ampl.args"
local kinds = require "ampl.kinds"
local raise = require "ampl.raise"

local M = {}

local levels = {
  O0 = {loss_scale = 1.0},
  O1 = {autocast = true, loss_scale = "dynamic"},
  O2 = {low = true, keep_batchnorm_fp32 = true, master_weights = true, loss_scale = "dynamic"},
  O3 = {low = true, keep_batchnorm_fp32 = false, master_weights = false, loss_scale = 1.0},
}

local parser = args.parser({
  {"opt_level", "string", "O1", choices = {"O0", "O1", "O2", "O3"}}, {"loss_scale", "scalar?"},
  {"keep_batchnorm_fp32", "boolean?"}, {"master_weights", "boolean?"},
  {"cast_model_type", "string", "f16", choices = {"f16", "bf16", "f32"}},
  {"min_loss_scale", "number?"}, {"max_loss_scale", "number", 2.0 ^ 24},
})

-- optimiser -> {scaler, links = {link of masters.lua, ...}, skip}
local records = setmetatable({}, {__mode = "k"})

local function record_of(op, optimizer)
  local r = optimizer ~= nil and records[optimizer]
  if not r then raise("ESTATE", op, "this optimizer has not been through amp.initialize") end
  return r
end

-- What counts: the level's value unless one is given.
local function settings(options)
  local o = parser:complete("initialize", "", options)
  local s = {dtype = o.cast_model_type, min = o.min_loss_scale, max = o.max_loss_scale}
  for k, v in pairs(levels[o.opt_level]) do s[k] = v end
  for _, name in ipairs {"loss_scale", "keep_batchnorm_fp32", "master_weights"} do
    if options[name] ~= nil then s[name] = options[name] end
  end
  if s.loss_scale ~= "dynamic" and not tonumber(s.loss_scale) then
    raise("EARG", "initialize", ('loss_scale must be a number or "dynamic", not %s'):format(args.shown(s.loss_scale)))
  end
  if s.master_weights and not s.low then
    raise("EVALUE", "initialize", "master_weights need a model in 16 bits: opt_level O2 or O3")
  end
  return s
end

-- A fixed scale still guards: a step whose gradients overflow is skipped, the scale stays.
local function scaler_for(s)
  if s.loss_scale ~= "dynamic" then
    local fixed = tonumber(s.loss_scale)
    return GradScaler{init_scale = fixed, min_scale = fixed, max_scale = fixed, on_floor = "keep"}
  end
  return GradScaler{init_scale = math.min(s.max, 2.0 ^ 16), min_scale = s.min or 2.0 ^ -126, max_scale = s.max}
end

-- Gives the model 16-bit tensors; a table old -> link.  `links`: of this model alone.
local function lower(model, s, moved)
  local _ <close> = core.enter_grad(false)
  local links = {}
  for _, m in ipairs(model:modules()) do
    local kept = s.keep_batchnorm_fp32 and m.running_mean ~= nil and m.weight ~= nil
    for _, kind in ipairs(kept and {} or {"parameters", "buffers"}) do
      for _, member in ipairs(m:members(kind)) do
        local old, name = member[2], member[3]
        if not moved[old] then
          local new = cast(old, s.dtype)
          moved[old] = masters.link(old, new == old and old or new:requires_grad_(old.requires_grad):keep())
          if kind == "parameters" and new ~= old and s.master_weights then links[#links + 1] = moved[old] end
        end
        rawset(m, name, moved[old].low)
        masters.place(moved[old], m, name)
      end
    end
  end
  return links
end

local function results(...) return table.pack(...) end

-- The model's forward, with 16-bit inputs and f32 results, or in a region.
local function wrap_forward(model, s, links)
  local forward = model.forward
  rawset(model, "forward", function(self, ...)
    if s.autocast then return autocast.autocast({dtype = s.dtype}, forward, self, ...) end
    masters.agree(links)
    local list = results(...)
    for i = 1, list.n do list[i] = cast(list[i], s.dtype) end
    local out = results(forward(self, table.unpack(list, 1, list.n)))
    for i = 1, out.n do out[i] = cast(out[i], "f32") end
    return table.unpack(out, 1, out.n)
  end)
end

-- The masters get what is loaded as it is in the dict, not rounded to 16 bits.
local function wrap_loading(model, links)
  if #links == 0 then return end
  local load = model.load_state_dict
  rawset(model, "load_state_dict", function(self, dict, ...)
    local report = load(self, dict, ...)
    masters.load(links, self:named_parameters(), dict)
    return report
  end)
end

-- The optimiser's step skips when it was told to, and hands the masters on to the model.
local function wrap_optimizer(optimizer, r)
  local step, zero_grad = optimizer.step, optimizer.zero_grad
  function optimizer.step(self, ...)
    if r.skip then
      r.skip = false
      return false
    end
    masters.agree(r.links)
    local out = results(step(self, ...))
    masters.hand_on(r.links)
    return table.unpack(out, 1, out.n)
  end
  function optimizer.zero_grad(self, ...)
    for _, link in ipairs(r.links) do link.low.grad = nil end
    return zero_grad(self, ...)
  end
end

-- What the optimiser knew of a parameter is known of the one that takes its place.
local function replace(optimizer, group, i, low)
  local state, p = optimizer.state, group.params[i]
  if type(state) == "table" then state[low], state[p] = state[p], nil end
  group.params[i] = low
end

local function prepare_optimizer(optimizer, s, moved)
  if records[optimizer] then raise("ESTATE", "initialize", "this optimizer has been through amp.initialize before") end
  local r = {scaler = scaler_for(s), links = {}, skip = false}
  for _, group in ipairs(optimizer.param_groups) do
    for i, p in ipairs(group.params) do
      local link = moved[p]
      if link and link.low ~= p and s.master_weights then
        r.links[#r.links + 1] = link
      elseif link then
        replace(optimizer, group, i, link.low)
      end
    end
  end
  records[optimizer] = r
  wrap_optimizer(optimizer, r)
end

-- One thing of a kind, or a list of them, as a list.
local function list_of(kind)
  local check, text = kinds.check(kind), kinds.text(kind)
  return function(name, v)
    if v == nil then return {} end
    local one, why = check(v)
    if one then return {one} end
    local list = kinds.check("list")(v)
    if not list or why then
      raise("EARG", "initialize", why and ("%s %s"):format(name, why) or
            ("%s must be %s or a list of them, not %s"):format(name, text, args.shown(v)))
    end
    for i, e in ipairs(list) do
      if not check(e) then
        raise("EARG", "initialize", ("entry %d of %s must be %s, not %s"):format(i, name, text, args.shown(e)))
      end
    end
    return list
  end
end
local models_of, optimizers_of = list_of("module"), list_of("optimizer")

---Prepares a model and an optimiser (or lists of them) for mixed precision; call it once, before the first step.
---@param models ampl.nn.Module|ampl.nn.Module[]
---@param optimizers table|table[]|nil
---@param options? table opt_level, loss_scale, keep_batchnorm_fp32, master_weights, cast_model_type, min_loss_scale,
---max_loss_scale
---@return ampl.nn.Module|ampl.nn.Module[] models
---@return table|table[]|nil optimizers
function M.initialize(models, optimizers, options)
  if options ~= nil and type(options) ~= "table" then
    raise("EARG", "initialize", ("options must be a table, not %s"):format(args.shown(options)))
  end
  models_of("models", models)
  optimizers_of("optimizers", optimizers)
  local s = settings(options or {})
  local moved = {}
  for _, model in ipairs(models_of("models", models)) do
    local links = s.low and lower(model, s, moved) or {}
    if s.low or s.autocast then wrap_forward(model, s, links) end
    wrap_loading(model, links)
  end
  for _, optimizer in ipairs(optimizers_of("optimizers", optimizers)) do
    prepare_optimizer(optimizer, s, moved)
  end
  return models, optimizers
end

---The tensors that the optimiser steps: f32 masters where there are, to be clipped, for one.
---@param optimizer table
---@return ampl.Tensor[]
function M.master_params(optimizer)
  masters.agree(record_of("master_params", optimizer).links)
  local out = {}
  for _, group in ipairs(optimizer.param_groups) do
    for _, p in ipairs(group.params) do out[#out + 1] = p end
  end
  return out
end

-- Moves the model's gradients to the masters, as f32.
local function to_masters(r)
  for _, link in ipairs(r.links) do
    local g = link.low.grad
    link.master.grad = g and g:float() or nil
    link.low.grad = nil
  end
end

---Calls fn with the scaled loss; it runs backward.  Then the gradients are unscaled, into the masters where there are,
---and added to those of earlier losses; after an overflow the optimiser's next step does nothing and returns false.
---@param loss ampl.Tensor
---@param optimizer table
---@param fn fun(scaled: ampl.Tensor): any
---@return any ... what fn returned
function M.scale_loss(loss, optimizer, fn)
  args.tensor("scale_loss", "loss", loss)
  args.callable("scale_loss", "fn", fn)
  local r = record_of("scale_loss", optimizer)
  local params, before = M.master_params(optimizer), {}
  for i, p in ipairs(params) do before[i], p.grad = p.grad or false, nil end
  for _, link in ipairs(r.links) do link.low.grad = nil end
  local out = results(fn(r.scaler:scale(loss)))
  to_masters(r)
  r.scaler:unscale_(optimizer)
  r.skip = not r.scaler:verdict(optimizer) or r.skip
  local _ <close> = core.enter_grad(false)
  for i, p in ipairs(params) do
    if before[i] then p.grad = p.grad and before[i]:add_(p.grad) or before[i] end
  end
  r.scaler:update()
  return table.unpack(out, 1, out.n)
end

return M
