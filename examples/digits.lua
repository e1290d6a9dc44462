-- What the examples about handwritten digits share: the data, the network, the count of right answers.

local ampl = require "ampl"
local nn, data = ampl.nn, ampl.data

local digits = {}

---The 1,797 digits of data/digits.csv.gz, every fifth held out: images (n, 1, 8, 8) in 0..1, labels 1..10.
---@param folder string where the data is
function digits.load(folder)
  local x, y = data.csv(folder .. "/digits.csv.gz", {label = -1, base = 0})
  if not x then error(y) end
  x = (x / 16):view(-1, 1, 8, 8)
  local train, test = {}, {}
  for i = 1, #x do table.insert(i % 5 == 0 and test or train, i) end
  local function rows(list)
    local at = ampl.tensor(list)
    return {x = x:index_select(1, at), y = y:index_select(1, at)}
  end
  return rows(train), rows(test)
end

---Three convolutions and a linear layer, 25 thousand weights.
function digits.network()
  return nn.Sequential(
    nn.Conv2d(1, 16, 3, {padding = 1, bias = false}), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, {padding = 1, bias = false}), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, {padding = 1, bias = false}), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(256, 10))
end

---The share of rows that the model gets right.
function digits.accuracy(model, set)
  model:eval()
  local right
  ampl.no_grad(function() right = model(set.x):argmax(2):eq(set.y):to("f32"):mean():item() end)
  model:train()
  return right
end

---The folder of the running script, so that examples start from anywhere.
function digits.here()
  return arg[0]:match("^(.*)/[^/]*$") or "."
end

return digits
