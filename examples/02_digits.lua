-- Handwritten digits with a small convolutional network, in mixed precision: autocast and a gradient scaler.
--
--   ampl examples/02_digits.lua [--dtype f32|bf16|f16] [--epochs 12] [--seed 1]

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path

local ampl = require "ampl"
local digits = require "digits"
local F, amp, optim, data = ampl.nn.functional, ampl.amp, ampl.optim, ampl.data

local o = {dtype = "f16", epochs = 12, seed = 1}
for i = 1, #arg, 2 do
  local name = arg[i]:match("^%-%-(%w+)$")
  assert(o[name], "unknown option " .. arg[i])
  o[name] = tonumber(arg[i + 1]) or arg[i + 1]
end

ampl.manual_seed(o.seed)
local train, test = digits.load(here .. "/data")
local loader = data.DataLoader(data.TensorDataset(train.x, train.y), {batch_size = 64, shuffle = true})
local model = digits.network()
local opt = optim.AdamW(model, {lr = 3e-3})
local schedule = optim.lr_scheduler.OneCycleLR(opt, {max_lr = 6e-3, total_steps = o.epochs * #loader})
local low = o.dtype ~= "f32"                            -- a low precision?
local scaler = amp.GradScaler{enabled = o.dtype == "f16"}

for epoch = 1, o.epochs do
  local sum, n = 0, 0
  for x, y in loader do
    local loss = amp.autocast({enabled = low, dtype = low and o.dtype or nil}, function()
      return F.cross_entropy(model(x), y)
    end)
    opt:zero_grad()
    scaler:scale(loss):backward()
    local taken = scaler:step(opt)
    scaler:update()
    if taken then schedule:step() end
    sum, n = sum + loss:item(), n + 1
  end
  print(("epoch %d  loss %.4f  scale %g"):format(epoch, sum / n, scaler:get_scale()))
end

print(("accuracy %.2f %%"):format(100 * digits.accuracy(model, test)))
