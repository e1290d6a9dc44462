-- A whole training step of small networks, from the weights on: in f16 under autocast, with a scaler and AdamW.  The C
-- tests run them while memory ends, interruptions come, or other threads do the same.  Each gives its loss.

local ampl = require "ampl"
local nn, F, amp, optim = ampl.nn, ampl.nn.functional, ampl.amp, ampl.optim

local function step(model, loss_of)
  local optimizer = optim.AdamW(model, {lr = 1e-2})
  local scaler = amp.GradScaler {init_scale = 128}
  local value
  for _ = 1, 2 do
    optimizer:zero_grad()
    local loss = amp.autocast({dtype = "f16"}, function() return loss_of(model) end)
    scaler:scale(loss):backward()
    scaler:step(optimizer)
    scaler:update()
    value = loss:item()
  end
  return value
end

local steps = {}

function steps.cnn()
  ampl.manual_seed(1)
  local model = nn.Sequential(nn.Conv2d(2, 4, 3, {padding = 1}), nn.BatchNorm2d(4), nn.ReLU(),
                              nn.Flatten(), nn.Linear(4 * 5 * 5, 3))
  local x, y = ampl.randn(2, 2, 5, 5), ampl.tensor {1, 3}
  return step(model, function(net) return F.cross_entropy(net(x), y) end)
end

function steps.transformer()
  ampl.manual_seed(2)
  local model = nn.TransformerEncoderLayer(8, 2, {dim_feedforward = 12, batch_first = true})
  local x = ampl.randn(2, 3, 8)
  return step(model, function(net) return F.mse_loss(net(x), x) end)
end

function steps.lstm()
  ampl.manual_seed(3)
  local model = nn.LSTM(3, 4, {batch_first = true})
  local x, y = ampl.randn(2, 3, 3), ampl.randn(2, 3, 4)
  return step(model, function(net)
    local out = net(x)
    return F.mse_loss(out, y)
  end)
end

-- Wide enough for several kernel threads, and no more: a sanitizer makes it slow.
function steps.wide()
  ampl.manual_seed(4)
  return F.gelu(ampl.randn(128, 192):matmul(ampl.randn(192, 192))):square():sum():item()
end

return steps
