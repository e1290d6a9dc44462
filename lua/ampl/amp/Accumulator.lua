-- Accumulator: an optimiser step over several micro-batches, scaled, unscaled and clipped as it must be.
--
--   local acc = amp.Accumulator{optimizer = opt, scaler = scaler, steps = 4, clip = 1}
--   for x, y in loader do
--     local stepped, loss = acc:backward(F.cross_entropy(model(x), y))
--   end
--   acc:flush()
--
-- The effective loss is the mean of the micro-batches' losses, weighted where weights (tokens, rows) are given: that of
-- one batch of all of them.  The sum of weights is known at the end only, so every loss is weighted against the first
-- one, and the gradients are corrected by what is missing, if anything is.

local core = require "ampl.core"
local Class = require "ampl.class"
local args = require "ampl.args"
local raise = require "ampl.raise"

---@class ampl.amp.Accumulator : ampl.Class
---@overload fun(options: table): ampl.amp.Accumulator
local Accumulator = Class:extend("Accumulator")

Accumulator.params = {
  {"optimizer", "optimizer"}, {"scaler", "scaler?"}, {"steps", "integer", 1, min = 1}, {"clip", "number?", above = 0},
  {"scheduler", "scheduler?"},
}
local signature = args.signature("Accumulator", Accumulator.params)

---@param ... any options: optimizer, scaler, steps (micro-batches a step), clip (the largest norm of all gradients),
---scheduler (stepped after each step that was taken)
function Accumulator:init(...)
  local o = signature(...)
  if type(o.optimizer.step) ~= "function" or type(o.optimizer.zero_grad) ~= "function" then
    raise("EARG", "Accumulator", "optimizer must be an optimizer, with step and zero_grad, not " ..
          args.shown(o.optimizer))
  end
  self.optimizer, self.scaler, self.scheduler = o.optimizer, o.scaler, o.scheduler
  self.steps, self.clip = o.steps, o.clip
  self.count = 0                        -- micro-batches of the present group
  self.fresh = true                     -- no gradient was added since the last step
end

local function parameters(optimizer)
  local list = {}
  for _, group in ipairs(optimizer.param_groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p end
  end
  return list
end

-- Multiplies the gradients by what their weights, taken against the first one's, lacked.
local function correct(self, factor)
  if factor == 1 then return end
  local _ <close> = core.enter_grad(false)
  for _, p in ipairs(parameters(self.optimizer)) do
    if p.grad then p.grad:mul_(factor) end
  end
end

-- Ends the group: whether the step was taken, and the mean loss.
local function step(self)
  local scaler, optimizer = self.scaler, self.optimizer
  local loss = (self.loss / self.weight):item()
  local factor = self.first * self.steps / self.weight
  self.count, self.fresh = 0, true
  if scaler and (factor ~= 1 or self.clip) then scaler:unscale_(optimizer) end
  correct(self, factor)
  if self.clip then
    require("ampl.nn.utils").clip_grad_norm_(parameters(optimizer), self.clip)
  end
  local taken = true
  if scaler then
    taken = scaler:step(optimizer)
    scaler:update()
  else
    optimizer:step()
  end
  if taken and self.scheduler then self.scheduler:step() end
  return taken, loss
end

---Backward of one micro-batch; every `steps` of them, the step.
---@param loss ampl.Tensor the micro-batch's mean loss, unscaled
---@param weight? number tokens or rows of the micro-batch, 1 by default
---@return boolean stepped false within a group, and when the step was skipped
---@return number? loss at the end of a group, the mean loss of the effective batch
function Accumulator:backward(loss, weight)
  weight = weight == nil and 1 or weight
  if type(weight) ~= "number" or not (weight > 0 and weight < math.huge) then
    raise("EVALUE", "backward", ("weight must be a number above 0, not %s"):format(args.shown(weight)))
  end
  args.tensor("backward", "loss", loss)
  if self.fresh then
    self.optimizer:zero_grad()
    self.fresh = false
  end
  if self.count == 0 then self.first, self.weight, self.loss = weight, 0, nil end
  local part = loss * (weight / self.first / self.steps)
  if self.scaler then part = self.scaler:scale(part) end
  part:backward()
  local seen = loss:detach():to("f64") * weight
  self.loss = (self.loss and self.loss + seen or seen):keep()
  self.weight, self.count = self.weight + weight, self.count + 1
  if self.count < self.steps then return false end
  return step(self)
end

---Steps on what a group has so far, if anything: at the end of an epoch.
---@return boolean stepped
---@return number? loss
function Accumulator:flush()
  if self.count == 0 then return false end
  return step(self)
end

function Accumulator:__tostring()
  return ("Accumulator (%s%s, steps = %d%s; %d micro-batches since the last step)"):format(
    self.optimizer.name or "an optimizer", self.scaler and " with a scaler" or "", self.steps,
    self.clip and (", clip = %g"):format(self.clip) or "", self.count)
end

return Accumulator
