-- MNIST with two linear layers, 784-128-10.
--
--   ampl examples/mnist.lua FOLDER [--epochs 3] [--lr 1e-3] [--batch 64] [--dtype f32|bf16|f16] [--seed 1]
--
-- FOLDER holds the four files of http://yann.lecun.com/exdb/mnist (train-images-idx3-ubyte.gz ...), packed or not.

local ampl = require "ampl"
local F, amp, optim, data = ampl.nn.functional, ampl.amp, ampl.optim, ampl.data

local o = {epochs = 3, lr = 1e-3, batch = 64, dtype = "f32", seed = 1}
local i = 1
while arg[i] do
  local name = arg[i]:match("^%-%-(%w+)$")
  if name then
    assert(o[name], "unknown option " .. arg[i])
    o[name], i = tonumber(arg[i + 1]) or arg[i + 1], i + 2
  else
    o.folder, i = arg[i], i + 1
  end
end
assert(o.folder, "the first argument must be the folder with the four files")

local function read(name, options)
  local path = ("%s/%s"):format(o.folder, name)
  local packed = io.open(path .. ".gz", "rb")
  if packed then
    packed:close()
    path = path .. ".gz"
  end
  return assert(data.idx(path, options))
end

local function set(name)
  local x = read(name .. "-images-idx3-ubyte"):to("f32"):flatten(2) / 255
  return (x - 0.1307) / 0.3081, read(name .. "-labels-idx1-ubyte", {base = 0}):to("i64")
end

ampl.manual_seed(o.seed)
local train_x, train_y = set("train")
local test_x, test_y = set("t10k")
local loader = data.DataLoader(data.TensorDataset(train_x, train_y), {batch_size = o.batch, shuffle = true})
local model = ampl.models.mlp{sizes = {784, 128, 10}}
local opt = optim.Adam(model, {lr = o.lr})
local low = o.dtype ~= "f32"
local scaler = amp.GradScaler{enabled = o.dtype == "f16"}
local function run(x)
  return amp.autocast({enabled = low, dtype = low and o.dtype or nil}, function() return model(x) end)
end

for epoch = 1, o.epochs do
  local start, sum = os.clock(), 0
  for x, y in loader do
    local loss = F.cross_entropy(run(x), y)
    opt:zero_grad()
    scaler:scale(loss):backward()
    scaler:step(opt)
    scaler:update()
    sum = sum + loss:item()
  end
  local right
  ampl.no_grad(function() right = run(test_x):argmax(2):eq(test_y):to("f32"):mean():item() end)
  print(("epoch %d  loss %.4f  accuracy %.2f %%  cpu %.1f s"):format(epoch, sum / #loader, 100 * right,
        os.clock() - start))
end
