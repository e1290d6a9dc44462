-- ReduceLROnPlateau: times `factor` when a metric has not improved for more than `patience` steps.

local core = require "ampl.core"
local LRScheduler = require "ampl.optim.lr_scheduler.LRScheduler"
local args = require "ampl.args"
local raise = require "ampl.raise"

---@class ampl.optim.ReduceLROnPlateau : ampl.optim.LRScheduler
local ReduceLROnPlateau = LRScheduler:define("ReduceLROnPlateau", {
  {"mode", "string", "min", choices = {"min", "max"}}, {"factor", "number", 0.1, min = 0, below = 1},
  {"patience", "integer", 10, min = 0}, {"threshold", "number", 1e-4, min = 0},
  {"threshold_mode", "string", "rel", choices = {"rel", "abs"}},
  {"cooldown", "integer", 0, min = 0}, {"min_lr", "numbers", 0.0, min = 0}, {"eps", "number", 1e-8, min = 0},
}, {resumes = false})

function ReduceLROnPlateau:setup()
  self.min_lrs = self:per_group("min_lr", self.min_lr)
  self.best = self.mode == "min" and math.huge or -math.huge
  self.num_bad_epochs, self.cooldown_counter = 0, 0
end

local function better(self, a)
  local margin = self.threshold
  if self.mode == "min" then
    return a < (self.threshold_mode == "rel" and self.best * (1 - margin) or self.best - margin)
  end
  return a > (self.threshold_mode == "rel" and self.best * (1 + margin) or self.best + margin)
end

---@param metric number|ampl.Tensor
function ReduceLROnPlateau:step(metric)
  local shown = args.shown(metric)
  if core.is_tensor(metric) then metric = metric:item() end
  if type(metric) ~= "number" then
    raise("EARG", self.name, ("step: the metric must be a number or a tensor of one, not %s"):format(shown))
  end
  if self:held() then return end
  self:check_groups()
  self.last_epoch = self.last_epoch + 1
  if better(self, metric) then
    self.best, self.num_bad_epochs = metric, 0
  else
    self.num_bad_epochs = self.num_bad_epochs + 1
  end
  if self.cooldown_counter > 0 then
    self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
  end
  if self.num_bad_epochs <= self.patience then return end
  for i, group in ipairs(self.optimizer.param_groups) do
    local lr = math.max(group.lr * self.factor, self.min_lrs[i])
    if group.lr - lr > self.eps then group.lr = lr end
  end
  self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
end

return ReduceLROnPlateau
