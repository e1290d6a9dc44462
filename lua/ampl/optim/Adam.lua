-- Adam (Kingma and Ba 2015); weight_decay is added to the gradient.

---@class ampl.optim.Adam : ampl.optim.Optimizer
return require "ampl.optim.adam_family"("Adam", 0.0, false)
