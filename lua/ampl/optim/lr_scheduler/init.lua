-- ampl.optim.lr_scheduler: schedulers of the learning rate.
--
--   local scheduler = ampl.optim.lr_scheduler.StepLR(optimizer, 10, {gamma = 0.5})
--   ... optimizer:step()  scheduler:step()

return require "ampl.lazy"("ampl.optim.lr_scheduler", {
  "LRScheduler", "StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
  "LinearLR", "ConstantLR", "PolynomialLR", "OneCycleLR", "CyclicLR", "ReduceLROnPlateau", "LambdaLR", "SequentialLR",
  "ChainedScheduler", "warmup",
})
