-- What all learning-rate schedulers share: counting steps, base rates, state, and standing still after a skipped step.
--
-- A scheduler defines get_lr(lr, base, i), the rate of group i after step number self.last_epoch (0 when it is made),
-- from its present rate and its rate at the start.

local Class = require "ampl.class"
local args = require "ampl.args"
local raise = require "ampl.raise"

---@class ampl.optim.LRScheduler : ampl.Class
---@field optimizer table
---@field last_epoch integer number of steps taken
---@field base_lrs number[]
local LRScheduler = Class:extend("LRScheduler")

LRScheduler.signature = args.signature("LRScheduler", {{"scaler", "any?"}})

-- Fields that are no state: objects that a checkpoint keeps elsewhere, or cannot keep.
local transient = {optimizer = true, scaler = true, schedulers = true}

---Makes a class of schedulers: `params` as in ampl.args, get_lr as above.
---@param name string
---@param params table
---@return ampl.optim.LRScheduler
function LRScheduler:define(name, params)
  local class = self:extend(name)
  local all = {table.unpack(params)}
  all[#all + 1] = {"scaler", "any?"}
  class.signature = args.signature(name, all)
  return class
end

---@param optimizer table any table with param_groups
function LRScheduler:init(optimizer, ...)
  if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then
    raise("EARG", self.name, "the first argument must be an optimizer")
  end
  for key, value in pairs(self.signature(...)) do self[key] = value end
  self.optimizer = optimizer
  self.base_lrs = {}
  for i, group in ipairs(optimizer.param_groups) do
    if group.initial_lr == nil then group.initial_lr = group.lr end
    self.base_lrs[i] = group.initial_lr
  end
  self.last_epoch = -1
  self:setup()
  self:advance()
end

---Checks and prepares options; before the first rate is set.
function LRScheduler:setup() end

---One value for each group, of a number for all or a list.
---@protected
function LRScheduler:per_group(name, value)
  local n = #self.optimizer.param_groups
  local out = {}
  if type(value) == "table" and #value ~= n then
    raise("EARG", self.name, ("%s has %d values for %d parameter groups"):format(name, #value, n))
  end
  for i = 1, n do out[i] = type(value) == "table" and value[i] or value end
  return out
end

---@protected
function LRScheduler:get_lr(lr)
  return lr
end

---The next step, whatever the scaler says.
---@protected
function LRScheduler:advance()
  self.last_epoch = self.last_epoch + 1
  for i, group in ipairs(self.optimizer.param_groups) do
    group.lr = self:get_lr(group.lr, self.base_lrs[i] or group.lr, i)
  end
end

---Starts over from the base rates.
---@protected
function LRScheduler:restart()
  for i, group in ipairs(self.optimizer.param_groups) do group.lr = self.base_lrs[i] or group.lr end
  self.last_epoch = -1
  self:advance()
end

---Whether the scaler's last step was skipped, so that this one must not count.
---@protected
function LRScheduler:held()
  return self.scaler ~= nil and not self.scaler:step_taken(self.optimizer)
end

---Sets the rates of the next step.  Call it after the optimiser's step.
function LRScheduler:step()
  if not self:held() then self:advance() end
end

---The rate of each group as it stands.
---@return number[]
function LRScheduler:get_last_lr()
  local out = {}
  for i, group in ipairs(self.optimizer.param_groups) do out[i] = group.lr end
  return out
end

local function copy(value)
  if type(value) ~= "table" then return value end
  local out = {}
  for k, v in pairs(value) do
    if type(v) ~= "function" then out[k] = copy(v) end
  end
  return out
end

---Numbers, strings and lists: everything but functions and the objects it was made with.
---@return table
function LRScheduler:state_dict()
  local out = {_last_lr = self:get_last_lr()}
  for key, value in pairs(self) do
    if not transient[key] and type(value) ~= "function" then out[key] = copy(value) end
  end
  return out
end

---Goes on where the state was taken, and sets the groups' rates to what they were then.
---@param state table
function LRScheduler:load_state_dict(state)
  if type(state) ~= "table" or math.tointeger(state.last_epoch) == nil then
    raise("EARG", self.name, "load_state_dict: no state of a scheduler")
  end
  for key, value in pairs(state) do
    if key ~= "_last_lr" then self[key] = copy(value) end
  end
  for i, group in ipairs(self.optimizer.param_groups) do
    if state._last_lr and state._last_lr[i] then group.lr = state._last_lr[i] end
  end
end

return LRScheduler
