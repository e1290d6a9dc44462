-- OneCycleLR: up to max_lr, then down far below the start, while momentum goes the other way (Smith and Topin 2018).

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local momentum = require "ampl.optim.lr_scheduler.momentum"
local raise = require "ampl.raise"

---@class ampl.optim.OneCycleLR : ampl.optim.LRScheduler
local OneCycleLR = LRScheduler:define("OneCycleLR", {
  {"max_lr", "numbers", min = 0}, {"total_steps", "integer?", min = 1}, {"epochs", "integer?", min = 1},
  {"steps_per_epoch", "integer?", min = 1}, {"pct_start", "number", 0.3, min = 0, max = 1},
  {"anneal_strategy", "string", "cos", choices = {"cos", "linear"}}, {"cycle_momentum", "boolean", true},
  {"base_momentum", "numbers", 0.85, min = 0}, {"max_momentum", "numbers", 0.95, min = 0},
  {"div_factor", "number", 25.0, above = 0}, {"final_div_factor", "number", 1e4, above = 0},
  {"three_phase", "boolean", false},
})

-- Each phase: the step at its end, and which of a group's rates and momenta it goes between.
local function phases(self)
  local n, up = self.total_steps, self.pct_start * self.total_steps
  if self.three_phase then
    return {{up - 1, "start", "max", "high", "low"}, {2 * up - 2, "max", "start", "low", "high"},
            {n - 1, "start", "min", "high", "high"}}
  end
  return {{up - 1, "start", "max", "high", "low"}, {n - 1, "max", "min", "low", "high"}}
end

-- The first and the last phase are walked, whatever their length, and their share divides by it.
local function check_phases(self)
  local list = phases(self)
  if list[1][1] == 0 or list[#list - 1][1] == list[#list][1] then
    raise("EVALUE", self.name, ("pct_start %g of total_steps %d makes a phase of no steps: change one of the two")
      :format(self.pct_start, self.total_steps))
  end
end

function OneCycleLR:setup()
  if not self.total_steps then
    if not (self.epochs and self.steps_per_epoch) then
      raise("EARG", self.name, "give total_steps, or epochs and steps_per_epoch")
    end
    if self.epochs > math.maxinteger // self.steps_per_epoch then
      raise("EVALUE", self.name, ("epochs %d times steps_per_epoch %d is too large"):format(self.epochs,
                                                                                           self.steps_per_epoch))
    end
    self.total_steps = self.epochs * self.steps_per_epoch
  end
  check_phases(self)
  local high = self:per_group("max_lr", self.max_lr)
  local low_momentum = self:per_group("base_momentum", self.base_momentum)
  local high_momentum = self:per_group("max_momentum", self.max_momentum)
  self.range = {}
  for i, group in ipairs(self.optimizer.param_groups) do
    local start = high[i] / self.div_factor
    if self.last_epoch == -1 then group.initial_lr = start else start = group.initial_lr end
    self.base_lrs[i] = start
    self.range[i] = {start = start, max = high[i], min = start / self.final_div_factor,
                     low = low_momentum[i], high = high_momentum[i]}
  end
  if self.cycle_momentum then momentum.check(self.name, self.optimizer) end
end

function OneCycleLR:get_lr(_, _, i)
  local e = self.last_epoch
  if e > self.total_steps then
    raise("ESTATE", self.name, ("step %d of a cycle of %d steps"):format(e, self.total_steps))
  end
  local list, from = phases(self), 0
  local p
  for k = 1, #list do
    p = list[k]
    if e <= p[1] or k == #list then break end
    from = p[1]
  end
  local range = self.range[i]
  local share = (e - from) / (p[1] - from)
  local function between(a, b)
    if self.anneal_strategy == "linear" then return a + (b - a) * share end
    return b + (a - b) / 2 * (1 + math.cos(math.pi * share))
  end
  if self.cycle_momentum then
    momentum.set(self.optimizer.param_groups[i], between(range[p[4]], range[p[5]]))
  end
  return between(range[p[2]], range[p[3]])
end

return OneCycleLR
