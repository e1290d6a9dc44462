-- A few training steps that touch most of the library: convolution, batch norm, attention, mixed precision, an
-- optimiser.
-- Run under valgrind and the sanitizers by scripts/test.

local ampl = require "ampl"
local nn, F, amp, optim = ampl.nn, ampl.nn.functional, ampl.amp, ampl.optim

ampl.manual_seed(1)

local Net = nn.Module:extend("Net")
function Net:init()
  self.conv = nn.Conv2d(1, 4, 3, {padding = 1})
  self.bn = nn.BatchNorm2d(4)
  self.attention = nn.MultiheadAttention(16, 2, {batch_first = true})
  self.norm = nn.LayerNorm(16)
  self.out = nn.Linear(16, 3)
end
function Net:forward(x)
  local h = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)     -- (n, 4, 4, 4)
  h = h:flatten(3)                                             -- (n, 4, 16)
  h = self.norm(h + self.attention(h, h, h))
  return self.out(F.gelu(h:mean(2)))
end

local model = Net()
local optimizer = optim.AdamW(model, {lr = 1e-2})
local x, y = ampl.randn(6, 1, 8, 8), ampl.tensor {1, 2, 3, 1, 2, 3}

for _, dtype in ipairs {"bf16", "f16"} do
  local scaler = amp.GradScaler {enabled = dtype == "f16"}
  for _ = 1, 2 do
    optimizer:zero_grad()
    local loss = amp.autocast({dtype = dtype}, function() return F.cross_entropy(model(x), y) end)
    scaler:scale(loss):backward()
    scaler:unscale_(optimizer)
    nn.utils.clip_grad_norm_(model, 1.0)
    scaler:step(optimizer)
    scaler:update()
    local value = loss:item()
    assert(value == value and value > 0 and value < 10, "loss " .. value)
    print(dtype, value)
  end
end

-- and what goes wrong
assert(not pcall(function() return x:matmul(ampl.ones(3, 3)) end))
assert(not pcall(F.cross_entropy, ampl.randn(2, 3), ampl.tensor {1, 9}))
