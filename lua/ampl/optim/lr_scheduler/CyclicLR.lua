-- CyclicLR: up and down between base_lr and max_lr, while momentum goes the other way (Smith 2017).

local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local momentum = require "ampl.optim.lr_scheduler.momentum"

---@class ampl.optim.CyclicLR : ampl.optim.LRScheduler
local CyclicLR = LRScheduler:define("CyclicLR", {
  {"base_lr", "numbers", min = 0}, {"max_lr", "numbers", min = 0}, {"step_size_up", "integer", 2000, min = 1},
  {"step_size_down", "integer?", min = 0}, {"mode", "string", "triangular", choices = {"triangular", "triangular2",
                                                                                      "exp_range"}},
  {"gamma", "number", 1.0, min = 0},
  {"scale_fn", "function?"}, {"scale_mode", "string", "cycle", choices = {"cycle", "iterations"}},
  {"cycle_momentum", "boolean", true}, {"base_momentum", "numbers", 0.8, min = 0},
  {"max_momentum", "numbers", 0.9, min = 0},
})

function CyclicLR:prepare()
  self.low = self:per_group("base_lr", self.base_lr)
  if self.last_epoch ~= -1 then return end
  for i, group in ipairs(self.optimizer.param_groups) do group.lr = self.low[i] end
end

function CyclicLR:setup()
  self.step_size_down = self.step_size_down or self.step_size_up
  self.high = self:per_group("max_lr", self.max_lr)
  self.low_momentum = self:per_group("base_momentum", self.base_momentum)
  self.high_momentum = self:per_group("max_momentum", self.max_momentum)
  if self.cycle_momentum then momentum.check(self.name, self.optimizer) end
end

-- Where it resumes, the first rate is reckoned from the group's initial_lr, the others from base_lr, as PyTorch has it.
function CyclicLR:begin()
  self:advance()
  for i, low in ipairs(self.low) do self.base_lrs[i] = low end
end

-- How high this cycle's peaks are, against the first one's.
local function peak(self, cycle)
  if self.scale_fn then
    return self:number_of("scale_fn", self.scale_fn(self.scale_mode == "cycle" and cycle or self.last_epoch))
  end
  if self.mode == "triangular2" then return 1 / 2 ^ (cycle - 1) end
  if self.mode == "exp_range" then return self.gamma ^ self.last_epoch end
  return 1
end

function CyclicLR:get_lr(_, base, i)
  local length = self.step_size_up + self.step_size_down
  local cycle = self.last_epoch // length + 1
  local x, top = self.last_epoch % length / length, self.step_size_up / length
  local height = (x <= top and x / top or (x - 1) / (top - 1)) * peak(self, cycle)
  if self.cycle_momentum then
    local low, high = self.low_momentum[i], self.high_momentum[i]
    momentum.set(self.optimizer.param_groups[i], high - (high - low) * height)
  end
  return base + (self.high[i] - base) * height
end

return CyclicLR
