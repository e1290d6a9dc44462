-- A small GPT that learns to write like a text file, byte by byte.
--
--   ampl examples/05_gpt.lua [FILE] [--layers 4] [--d 128] [--heads 4] [--context 128] [--batch 16] [--steps 3000]
--                            [--lr 1e-3] [--dtype f32|bf16|f16] [--sample 400] [--seed 1]
--
-- The last tenth of the text is held out.  Without FILE the text is data/shakespeare.txt, 100 kB of it.

local ampl = require "ampl"
local F, amp, optim, utils = ampl.nn.functional, ampl.amp, ampl.optim, ampl.nn.utils

local o = {layers = 4, d = 128, heads = 4, context = 128, batch = 16, steps = 3000, lr = 1e-3, dtype = "f32",
           sample = 400, seed = 1, file = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/data/shakespeare.txt"}
local i = 1
while arg[i] do
  local name = arg[i]:match("^%-%-(%w+)$")
  if name then
    assert(o[name], "unknown option " .. arg[i])
    o[name], i = tonumber(arg[i + 1]) or arg[i + 1], i + 2
  else
    o.file, i = arg[i], i + 1
  end
end

ampl.manual_seed(o.seed)
local file = assert(io.open(o.file, "rb"))
local text = file:read("a")
file:close()
local ids = ampl.from_bytes(text, {#text}, {dtype = "u8"}):to("i64") + 1          -- a token is a byte, from 1
local n_train = #ids * 9 // 10
local train, held_out = ids:narrow(1, 1, n_train), ids:narrow(1, n_train + 1, #ids - n_train)

local model = ampl.models.gpt{layers = o.layers, d = o.d, heads = o.heads, context = o.context, vocab = 256}
local opt = optim.AdamW(model, {lr = o.lr, betas = {0.9, 0.99}})
local low = o.dtype ~= "f32"
local scaler = amp.GradScaler{enabled = o.dtype == "f16"}
local warmup = math.min(100, o.steps // 10)
local schedule = optim.lr_scheduler.LambdaLR(opt, function(step)                  -- warm up, then down to a tenth
  if step < warmup then return (step + 1) / warmup end
  return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / math.max(1, o.steps - warmup)))
end)

local function loss_of(x, y)
  return amp.autocast({enabled = low, dtype = low and o.dtype or nil}, function()
    return F.cross_entropy(model(x):view(-1, 256), y:reshape(-1))
  end)
end

local offsets = ampl.arange(0, o.context + 1)
local function batch()                                  -- windows from anywhere in the text
  local starts = ampl.randint(1, #train - o.context + 1, {o.batch, 1})
  local windows = train[starts + offsets]
  return windows:narrow(2, 1, o.context), windows:narrow(2, 2, o.context)
end

local function evaluate()                               -- mean loss over the whole held-out text
  model:eval()
  local sum, n, rows = 0, 0, (#held_out - 1) // o.context
  local x = held_out:narrow(1, 1, rows * o.context):view(rows, o.context)
  local y = held_out:narrow(1, 2, rows * o.context):view(rows, o.context)
  ampl.no_grad(function()
    for from = 1, rows, 32 do
      local k = math.min(32, rows - from + 1)
      sum, n = sum + k * loss_of(x:narrow(1, from, k), y:narrow(1, from, k)):item(), n + k
    end
  end)
  model:train()
  return sum / n
end

local smooth, start = 0.0, os.time()
for step = 1, o.steps do
  local loss = loss_of(batch())
  opt:zero_grad()
  scaler:scale(loss):backward()
  scaler:unscale_(opt)
  utils.clip_grad_norm_(model, 1.0)
  if scaler:step(opt) then schedule:step() end
  scaler:update()
  smooth = smooth + (loss:item() - smooth) / math.min(step, 100)                  -- about the mean of the last 100
  if step % 100 == 0 or step == o.steps or step <= 3 then
    print(("step %d  loss %.4f  lr %.2e  %d s"):format(step, smooth, schedule:get_last_lr()[1], os.time() - start))
  end
end
print(("held out %.4f"):format(evaluate()))

local out = ampl.tensor({{string.byte("\n") + 1}})
ampl.no_grad(function()
  for _ = 1, o.sample do
    local t = out.shape[2]
    local seen = t > o.context and out:narrow(2, t - o.context + 1, o.context) or out
    local p = (model(seen)[{1, -1}] / 0.8):softmax(1)
    out = ampl.cat({out, p:multinomial(1):view(1, 1)}, 2)
  end
end)
print(out[1]:totable() and (out[1] - 1):to("u8"):tobytes())
