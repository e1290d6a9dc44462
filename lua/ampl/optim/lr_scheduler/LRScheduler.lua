-- What all learning-rate schedulers share: counting steps, base rates, state, and standing still after a skipped step.
--
-- A scheduler defines get_lr(lr, base, i), the rate of group i after step number self.last_epoch (0 when it is made),
-- from its present rate and its rate at the start.

local Class = require "ampl.class"
local args = require "ampl.args"
local listing = require "ampl.listing"
local raise = require "ampl.raise"

---@class ampl.optim.LRScheduler : ampl.Class
---@field optimizer table
---@field last_epoch integer number of steps taken
---@field base_lrs number[]
local LRScheduler = Class:extend("LRScheduler")

-- Fields that are no state: objects that a checkpoint keeps elsewhere, or cannot keep.
local transient = {optimizer = true, scaler = true, schedulers = true, start = true, initial = true}

---Makes a class of schedulers: `params` as in ampl.args, get_lr as above.  `how`: leads = false, no optimizer in front
---of the parameters; resumes = false, no last_epoch.
---@param name string
---@param params table
---@param how? {leads: boolean?, resumes: boolean?}
---@return ampl.optim.LRScheduler
function LRScheduler:define(name, params, how)
  local class = self:extend(name)
  local all = {table.unpack(params)}
  if not how or how.leads ~= false then table.insert(all, 1, {"optimizer", "optimizer"}) end
  if not how or how.resumes ~= false then all[#all + 1] = {"last_epoch", "integer", -1, min = -1} end
  all[#all + 1] = {"scaler", "scaler?"}
  class.params, class.parser = all, args.parser(all)
  return class
end

-- What `define` gives the classes, for the base itself.
do
  local own = LRScheduler:define("LRScheduler", {})
  LRScheduler.params, LRScheduler.parser = own.params, own.parser
end

-- The rates that a scheduler starts from: kept in the groups, so that one made later starts from the same.
local function read_base(self)
  self.base_lrs = {}
  for i, group in ipairs(self.optimizer.param_groups) do
    if self.last_epoch == -1 and group.initial_lr == nil then group.initial_lr = group.lr end
    if type(group.initial_lr) ~= "number" then
      raise("EARG", self.name, self.last_epoch == -1 and
            ("lr of parameter group %d must be a number, not %s"):format(i, args.shown(group.initial_lr)) or
            ("last_epoch = %d resumes, and parameter group %d has no initial_lr: load the optimizer's state first")
              :format(self.last_epoch, i))
    end
    self.base_lrs[i] = group.initial_lr
  end
end

---@param optimizer table any table with param_groups
function LRScheduler:init(optimizer, ...)
  for key, value in pairs(self.parser:read(self.name, "", optimizer, ...)) do self[key] = value end
  self.last_epoch = self.last_epoch or -1
  self.start = self.last_epoch
  self:prepare()
  read_base(self)
  self:setup()
  self.initial = true
  self:begin()
  self.initial = nil
end

---What a scheduler that brings rates of its own does before the groups' rates are read.
---@protected
function LRScheduler:prepare() end

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

---What one of the scheduler's functions gave, which must be a number.
---@protected
function LRScheduler:number_of(name, value)
  if type(value) == "number" then return value end
  raise("EARG", self.name, ("%s must return a number, not %s"):format(name, args.shown(value)))
end

---@protected
function LRScheduler:get_lr(lr)
  return lr
end

---Raises unless every group still has a rate.
---@protected
function LRScheduler:check_groups()
  for i, group in ipairs(self.optimizer.param_groups) do
    if type(group.lr) ~= "number" then
      raise("EARG", self.name, ("lr of parameter group %d must be a number, not %s"):format(i, args.shown(group.lr)))
    end
  end
end

---The first step, which is made with the scheduler: it counts as step 0.
---@protected
function LRScheduler:begin() self:advance() end

---The next step, whatever the scaler says.
---@protected
function LRScheduler:advance()
  self:check_groups()
  self.last_epoch = self.last_epoch + 1
  for i, group in ipairs(self.optimizer.param_groups) do
    group.lr = self:get_lr(group.lr, self.base_lrs[i] or group.lr, i)
  end
end

---Starts over from the base rates.
---@protected
function LRScheduler:restart()
  for i, group in ipairs(self.optimizer.param_groups) do group.lr = self.base_lrs[i] or group.lr end
  self.last_epoch = self.start
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
  return listing(out)
end

-- Whether two values are of one kind, tables down to their entries.
local function alike(a, b)
  if type(a) ~= type(b) then return false end
  if type(a) ~= "table" then return true end
  for k, v in pairs(a) do
    if not alike(v, b[k]) then return false end
  end
  return true
end

---Raises unless `state` can be taken over.
---@protected
function LRScheduler:check_state(state)
  local function bad(text, ...) raise("EARG", self.name, "load_state_dict: " .. text:format(...)) end
  if type(state) ~= "table" then bad("a table is needed, not %s", args.shown(state)) end
  if math.type(state.last_epoch) ~= "integer" or state.last_epoch < -1 then
    bad("no state of a scheduler: last_epoch is %s", args.shown(state.last_epoch))
  end
  for key, value in pairs(self:state_dict()) do
    local given = state[key]
    if given ~= nil and self.parser:has(key) then
      self.parser:check(self.name, "load_state_dict: " .. key, key, given)
    elseif given ~= nil and not alike(value, given) then
      bad("%s does not fit: it is %s here", key, args.shown(given))
    end
  end
end

---Goes on where the state was taken, and sets the groups' rates to what they were then.  Nothing changes on an error.
---@param state table
function LRScheduler:load_state_dict(state)
  self:check_state(state)
  for key in pairs(self:state_dict()) do
    if key ~= "_last_lr" and state[key] ~= nil then self[key] = copy(state[key]) end
  end
  for i, group in ipairs(self.optimizer.param_groups) do
    if state._last_lr and state._last_lr[i] then group.lr = state._last_lr[i] end
  end
end

local function shown(v)
  if type(v) == "table" then
    local parts = {}
    for i, e in ipairs(v) do parts[i] = shown(e) end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  return type(v) == "number" and ("%.6g"):format(v) or tostring(v)
end

function LRScheduler:__tostring()
  local parts = {}
  for _, p in ipairs(self.params) do
    local v = self[p[1]]
    if v ~= nil and type(v) ~= "function" and not transient[p[1]] and p[1] ~= "last_epoch" then
      parts[#parts + 1] = p[1] .. " = " .. shown(v)
    end
  end
  return ("%s(%s; after step %d: lr = %s)"):format(self.name, table.concat(parts, ", "), self.last_epoch,
                                                   shown(self:get_last_lr()))
end

return LRScheduler
