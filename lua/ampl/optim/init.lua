-- ampl.optim: optimisers and learning-rate schedulers.
--
--   local opt = ampl.optim.AdamW(model, {lr = 1e-3})
--   opt:zero_grad()  loss:backward()  opt:step()

return require "ampl.lazy"("ampl.optim", {
  "Optimizer", "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Lion", "LAMB",
  "LBFGS", "lr_scheduler",
})
