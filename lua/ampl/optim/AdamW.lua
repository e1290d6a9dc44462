-- AdamW (Loshchilov and Hutter 2019): Adam whose weight decay acts on the parameter itself.

---@class ampl.optim.AdamW : ampl.optim.Optimizer
return require "ampl.optim.adam_family"("AdamW", 1e-2, true)
