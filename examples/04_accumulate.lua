-- Gradient accumulation and clipping: four micro-batches make one step, in f16 with a scaler.
--
--   ampl examples/04_accumulate.lua [--steps 40] [--micro 4] [--clip 1.0]
--
-- The order matters: gradients are unscaled before they are measured and clipped, and all of that happens once for
-- each effective batch.

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path

local ampl = require "ampl"
local digits = require "digits"
local F, amp, optim, data, utils = ampl.nn.functional, ampl.amp, ampl.optim, ampl.data, ampl.nn.utils

local o = {steps = 40, micro = 4, clip = 1.0}
for i = 1, #arg, 2 do
  local name = arg[i]:match("^%-%-(%w+)$")
  assert(o[name], "unknown option " .. arg[i])
  o[name] = tonumber(arg[i + 1])
end

ampl.manual_seed(1)
local train, test = digits.load(here .. "/data")
local model = ampl.models.mlp{sizes = {64, 64, 10}}
local opt = optim.SGD(model, {lr = 0.2, momentum = 0.9})
local scaler = amp.GradScaler{init_scale = 1024}
local loader = data.DataLoader(data.TensorDataset(train.x:flatten(2), train.y),
                               {batch_size = 32, shuffle = true, drop_last = true})

local step, count, sum = 0, 0, 0
while step < o.steps do
  for x, y in loader do
    local loss = amp.autocast({dtype = "f16"}, function() return F.cross_entropy(model(x), y) / o.micro end)
    scaler:scale(loss):backward()                       -- adds to what earlier micro-batches left
    count, sum = count + 1, sum + loss:item()
    if count == o.micro then
      scaler:unscale_(opt)
      local norm = utils.clip_grad_norm_(model, o.clip)
      scaler:step(opt)
      scaler:update()
      opt:zero_grad()
      step = step + 1
      print(("step %d  loss %.4f  norm %.3f"):format(step, sum, norm:item()))
      count, sum = 0, 0
    end
    if step == o.steps then break end
  end
end

test.x = test.x:flatten(2)
print(("accuracy %.2f %%"):format(100 * digits.accuracy(model, test)))
