-- Fits a straight line: tensors, a layer, a loss, an optimiser.
--
--   ampl examples/01_line.lua [--steps 100] [--lr 0.3]

local ampl = require "ampl"
local nn, F, optim = ampl.nn, ampl.nn.functional, ampl.optim

local o = {steps = 100, lr = 0.3}
for i = 1, #arg, 2 do
  local name = arg[i]:match("^%-%-(%w+)$")
  assert(o[name], "unknown option " .. arg[i])
  o[name] = tonumber(arg[i + 1])
end

ampl.manual_seed(1)
local x = ampl.linspace(-1, 1, 64):unsqueeze(2)         -- (64, 1): one number a row
local y = 3 * x + 0.5 + 0.1 * ampl.randn(64, 1)         -- the line to find, with noise

local model = nn.Linear(1, 1)
local opt = optim.SGD(model, {lr = o.lr})

for step = 1, o.steps do
  local loss = F.mse_loss(model(x), y)
  opt:zero_grad()
  loss:backward()
  opt:step()
  print(("step %d  loss %.6f"):format(step, loss:item()))
end

print(("y = %.3f x + %.3f"):format(model.weight:item(), model.bias:item()))
