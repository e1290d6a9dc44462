-- The same network in f32, bf16 and f16: what each costs and what each loses.
--
--   ampl examples/03_precisions.lua [--epochs 12] [--seed 1]
--
-- The last column: of the gradients' entries, the share that f16 turns to 0 when the loss is not scaled.

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path

local ampl = require "ampl"
local digits = require "digits"
local F, amp, optim, data = ampl.nn.functional, ampl.amp, ampl.optim, ampl.data

local o = {epochs = 12, seed = 1}
for i = 1, #arg, 2 do
  local name = arg[i]:match("^%-%-(%w+)$")
  assert(o[name], "unknown option " .. arg[i])
  o[name] = tonumber(arg[i + 1])
end

local train, test = digits.load(here .. "/data")

local function forward(model, x, y, dtype)
  return amp.autocast({enabled = dtype ~= "f32", dtype = dtype ~= "f32" and dtype or nil}, function()
    return F.cross_entropy(model(x), y)
  end)
end

local function run(dtype)
  ampl.manual_seed(o.seed)
  ampl.reset_peak_memory()
  local loader = data.DataLoader(data.TensorDataset(train.x, train.y), {batch_size = 64, shuffle = true})
  local model = digits.network()
  local opt = optim.AdamW(model, {lr = 3e-3})
  local schedule = optim.lr_scheduler.OneCycleLR(opt, {max_lr = 6e-3, total_steps = o.epochs * #loader})
  local scaler = amp.GradScaler{enabled = dtype == "f16"}
  local start = os.clock()
  for _ = 1, o.epochs do
    for x, y in loader do
      opt:zero_grad()
      scaler:scale(forward(model, x, y, dtype)):backward()
      if scaler:step(opt) then schedule:step() end
      scaler:update()
    end
  end
  return model, {time = os.clock() - start, memory = ampl.memory().peak / 2 ^ 20, scale = scaler:get_scale(),
                 skipped = scaler:stats().skipped, accuracy = 100 * digits.accuracy(model, test)}
end

-- Of the gradients' entries that are not 0 with a scaled loss, the share that are 0 without: in the gradients of what
-- the layers return, which f16 holds (those of the weights are summed in f32).
local function lost(model)
  local x, y = train.x:narrow(1, 1, 256), train.y:narrow(1, 1, 256)
  local function nonzero(scale)
    local seen, hooks = {}, {}
    for i, layer in ipairs(model) do
      hooks[i] = layer:register_forward_hook(function(_, _, out)
        out:register_hook(function(g) seen[i] = g:ne(0) end)
      end)
    end
    local loss = forward(model, x, y, "f16") * scale
    loss:backward()
    for _, hook in ipairs(hooks) do hook:remove() end
    return seen
  end
  local scaled, plain, all, gone = nonzero(2 ^ 12), nonzero(1), 0, 0
  for i, s in ipairs(scaled) do
    all = all + s:count_nonzero():item()
    gone = gone + s:logical_and(plain[i]:logical_not()):count_nonzero():item()
  end
  return 100 * gone / all
end

print("dtype   accuracy   cpu time   peak memory   scale   skipped   lost without scaler")
for _, dtype in ipairs({"f32", "bf16", "f16"}) do
  local model, r = run(dtype)
  print(("%-5s  %7.2f %%  %7.2f s  %8.1f MiB  %6g  %8d   %s"):format(dtype, r.accuracy, r.time, r.memory, r.scale,
        r.skipped, dtype == "f16" and ("%.2f %%"):format(lost(model)) or "-"))
end
