-- Benchmarks of training steps: six workloads (a-f) on the public Lua API, the price of a small op, and a table.
--
--   ampl scripts/bench.lua [-w abcdef] [-t 1,2] [-p f32,bf16] [-r ROUNDS] [-s SECONDS] [-m eager,tuned] [--json FILE]
--   ampl scripts/bench.lua --step WORKLOAD -t THREADS -p PRECISION -s SECONDS     one measurement, one JSON line
--
-- With $PY, the path of a Python that has PyTorch, each measurement is followed by the peer's own (modes -m; the best
-- of them counts), in rounds; the least median of the rounds is shown, and peer / ampl: above 1 ampl is faster.

local ampl = require "ampl"
local nn, F, amp, optim = ampl.nn, ampl.nn.functional, ampl.amp, ampl.optim

-- ------------------------------------------------------------------------------------------------ workloads
-- The same models as the peer's, layer by layer.  Each builder gives model, batches, loss, optimizer, FLOP of a step.

local build = {}

local function labels(n, classes) return ampl.randint(1, classes + 1, {n}) end

local function batches(n, make)
  local list = {}
  for i = 1, n do list[i] = {make()} end
  return list
end

local function mlp(sizes)
  local layers = {}
  for i = 1, #sizes - 1 do
    layers[#layers + 1] = nn.Linear(sizes[i], sizes[i + 1])
    if i < #sizes - 1 then layers[#layers + 1] = nn.ReLU() end
  end
  return nn.Sequential(table.unpack(layers))
end

local function mlp_flops(sizes, n)
  local total = 0
  for i = 1, #sizes - 1 do total = total + 2 * n * sizes[i] * sizes[i + 1] * (i == 1 and 2 or 3) end
  return total
end

function build.a()
  local sizes = {64, 128, 10}
  local model = mlp(sizes)
  local data = batches(4, function() return ampl.randn(32, 64), labels(32, 10) end)
  return model, data, F.cross_entropy, optim.SGD(model, {lr = 0.001}), mlp_flops(sizes, 32)
end

function build.b()
  local sizes = {784, 1024, 1024, 10}
  local model = mlp(sizes)
  local data = batches(4, function() return ampl.randn(128, 784), labels(128, 10) end)
  return model, data, F.cross_entropy, optim.SGD(model, {lr = 0.001, momentum = 0.9}), mlp_flops(sizes, 128)
end

local LeNet = nn.Module:extend("LeNet")
function LeNet:init()
  self.c1 = nn.Conv2d(1, 32, 3, {padding = 1})
  self.c2 = nn.Conv2d(32, 64, 3, {padding = 1})
  self.f1 = nn.Linear(64 * 7 * 7, 128)
  self.f2 = nn.Linear(128, 10)
end
function LeNet:forward(x)
  x = F.max_pool2d(F.relu(self.c1(x)), 2)
  x = F.max_pool2d(F.relu(self.c2(x)), 2)
  return self.f2(F.relu(self.f1(x:flatten(2))))
end

function build.c()
  local n, model = 64, LeNet()
  local data = batches(4, function() return ampl.randn(n, 1, 28, 28), labels(n, 10) end)
  local c1, c2 = 2 * n * 28 * 28 * 32 * 9, 2 * n * 14 * 14 * 64 * 32 * 9
  local fc = 2 * n * (3136 * 128 + 128 * 10)
  return model, data, F.cross_entropy, optim.SGD(model, {lr = 0.01, momentum = 0.9}), 2 * c1 + 3 * c2 + 3 * fc
end

local Block = nn.Module:extend("Block")
function Block:init(cin, cout, stride)
  self.c1 = nn.Conv2d(cin, cout, 3, {stride = stride, padding = 1, bias = false})
  self.b1 = nn.BatchNorm2d(cout)
  self.c2 = nn.Conv2d(cout, cout, 3, {padding = 1, bias = false})
  self.b2 = nn.BatchNorm2d(cout)
  if stride ~= 1 or cin ~= cout then
    self.short = nn.Sequential(nn.Conv2d(cin, cout, 1, {stride = stride, bias = false}), nn.BatchNorm2d(cout))
  end
end
function Block:forward(x)
  local y = F.relu(self.b1(self.c1(x)))
  y = self.b2(self.c2(y))
  return F.relu(y + (self.short and self.short(x) or x))
end

local ResNet = nn.Module:extend("ResNet")
function ResNet:init()
  self.stem = nn.Conv2d(3, 64, 3, {padding = 1, bias = false})
  self.bn = nn.BatchNorm2d(64)
  local layers, cin = {}, 64
  for i, cout in ipairs {64, 128, 256, 512} do
    layers[#layers + 1] = Block(cin, cout, i == 1 and 1 or 2)
    layers[#layers + 1] = Block(cout, cout, 1)
    cin = cout
  end
  self.layers = nn.Sequential(table.unpack(layers))
  self.fc = nn.Linear(512, 10)
end
function ResNet:forward(x)
  x = self.layers(F.relu(self.bn(self.stem(x))))
  return self.fc(x:mean({3, 4}))
end

local function resnet_flops(n)
  local function conv(cin, cout, k, hw) return 2 * n * cin * cout * k * k * hw * hw end
  local total, cin, hw = 2 * conv(3, 64, 3, 32), 64, 32
  for i, cout in ipairs {64, 128, 256, 512} do
    if i > 1 then hw = hw // 2 end
    total = total + 3 * (conv(cin, cout, 3, hw) + 3 * conv(cout, cout, 3, hw))
    if i > 1 then total = total + 3 * conv(cin, cout, 1, hw) end
    cin = cout
  end
  return total + 3 * 2 * n * 512 * 10
end

function build.d()
  local n, model = 32, ResNet()
  local data = batches(2, function() return ampl.randn(n, 3, 32, 32), labels(n, 10) end)
  local optimizer = optim.SGD(model, {lr = 0.001, momentum = 0.9, weight_decay = 5e-4})
  return model, data, F.cross_entropy, optimizer, resnet_flops(n)
end

local Layer = nn.Module:extend("Layer")
function Layer:init(d, heads, causal)
  self.causal, self.heads = causal, heads                 -- causal: norm first, as GPT; else norm last, as BERT
  self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
  self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
  self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
end
function Layer:attend(x)
  local b, t, d = x:size(1), x:size(2), x:size(3)
  local parts = self.qkv(x):split(d, 3)
  for i = 1, 3 do parts[i] = parts[i]:view(b, t, self.heads, d // self.heads):transpose(2, 3) end
  local y = F.scaled_dot_product_attention(parts[1], parts[2], parts[3], {is_causal = self.causal})
  return self.proj(y:transpose(2, 3):reshape(b, t, d))
end
function Layer:forward(x)
  if self.causal then
    x = x + self:attend(self.n1(x))
    return x + self.f2(F.gelu(self.f1(self.n2(x))))
  end
  x = self.n1(x + self:attend(x))
  return self.n2(x + self.f2(F.gelu(self.f1(x))))
end

local Transformer = nn.Module:extend("Transformer")
function Transformer:init(vocab, context, d, heads, layers, classes)
  self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(context, d)
  local list = {}
  for i = 1, layers do list[i] = Layer(d, heads, not classes) end
  self.layers, self.norm, self.classes = nn.ModuleList(list), nn.LayerNorm(d), classes
  self.head = nn.Linear(d, classes or vocab, {bias = classes ~= nil})
end
function Transformer:forward(index)
  local x = self.tok(index) + self.pos(ampl.arange(1, index:size(2) + 1))
  if self.classes then x = self.norm(x) end
  for _, layer in ipairs(self.layers) do x = layer(x) end
  if self.classes then return self.head(x:mean(2)) end
  return self.head(self.norm(x))
end

local function transformer_flops(b, t, d, layers)
  return 3 * layers * (2 * b * t * 12 * d * d + 2 * 2 * b * t * t * d)
end

function build.e()
  local b, t, d, v, layers = 16, 128, 128, 65, 4
  local model = Transformer(v, t, d, 4, layers)
  local data = batches(4, function() return ampl.randint(1, v + 1, {b, t}), ampl.randint(1, v + 1, {b, t}) end)
  local function loss(out, y) return F.cross_entropy(out:view(-1, v), y:view(-1)) end
  return model, data, loss, optim.AdamW(model, {lr = 1e-3}), transformer_flops(b, t, d, layers) + 3 * 2 * b * t * d * v
end

function build.f()
  local b, t, d, v, layers = 8, 128, 384, 8192, 6
  local model = Transformer(v, t, d, 6, layers, 2)
  local data = batches(4, function() return ampl.randint(1, v + 1, {b, t}), labels(b, 2) end)
  return model, data, F.cross_entropy, optim.AdamW(model, {lr = 1e-4}), transformer_flops(b, t, d, layers)
end

-- ------------------------------------------------------------------------------------------------ one measurement

local now = require("ampl.core").clock

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

-- Steps until `seconds` are over, after a third as long to warm up.
local function measure(workload, threads, precision, seconds)
  ampl.set_num_threads(threads)
  ampl.manual_seed(1)
  local model, data, loss_fn, optimizer, flops = build[workload]()
  model:train()

  local function step(i)
    local _ <close> = ampl.scope()
    local batch = data[i % #data + 1]
    local loss
    if precision == "f32" then
      loss = loss_fn(model(batch[1]), batch[2])
    else
      local out = amp.autocast({dtype = precision}, function() return model(batch[1]) end)
      loss = loss_fn(out:float(), batch[2])
    end
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    return loss:item()
  end

  local n, first, last = 0, nil, nil
  local start = now()
  while n < 5 or now() - start < seconds / 3 do
    first = first or step(n)
    step(n)
    n = n + 1
  end
  local times = {}
  start = now()
  while #times < 8 or now() - start < seconds do
    local t = now()
    last = step(n)
    times[#times + 1] = now() - t
    n = n + 1
  end
  local ms = median(times) * 1e3
  return {workload = workload, threads = threads, precision = precision, ms = ms, gflops = flops / ms / 1e6,
          steps = #times, first = first, last = last}
end

-- Nanoseconds of one f32 add of 16 elements, with and without a graph node, handles made and dropped.
local function overhead()
  ampl.set_num_threads(1)
  local a, b = ampl.randn(16), ampl.randn(16)
  local function ns(fn, inner)
    local times = {}
    for i = 1, 41 do
      local t = now()
      for _ = 1, inner do fn() end
      times[i] = (now() - t) / inner * 1e9
    end
    return median(times)
  end
  local plain = ampl.no_grad(function() return ns(function() return a + b end, 2000) end)
  local g = ampl.randn(16, {requires_grad = true})
  return plain, ns(function() return g + b end, 2000)
end

-- ------------------------------------------------------------------------------------------------ options

local options = {w = "abcdef", t = "1,2", p = "f32,bf16", r = "3", s = "4", m = "eager,tuned"}
do
  local i = 1
  while arg[i] do
    local name = arg[i]:match("^%-%-?(%a+)$")
    if not name or not arg[i + 1] or not (options[name] or name == "json" or name == "step") then
      io.stderr:write("bench: I do not understand '", arg[i], "'; the options are at the top of scripts/bench.lua\n")
      os.exit(2)
    end
    options[name], i = arg[i + 1], i + 2
  end
end

if options.step then
  local r = measure(options.step, math.tointeger(tonumber(options.t)), options.p, tonumber(options.s))
  print(('{"ms": %.4f, "gflops": %.2f, "steps": %d, "first": %.4f, "last": %.4f}'):format(
    r.ms, r.gflops, r.steps, r.first, r.last))
  return
end

-- ------------------------------------------------------------------------------------------------ the table

local python = os.getenv("PY")
local peer = os.getenv("AMPL_PEER")
if python and not (peer and io.open(peer .. "/step.py")) then
  io.stderr:write("bench: no peer programs at ", tostring(peer), "; ampl alone\n")
  python = nil
end
local json = options.json and assert(io.open(options.json, "a"))

local function number_of(command, field)
  local pipe = io.popen(command .. " 2>/dev/null")
  local text = pipe:read("a")
  pipe:close()
  local value = tonumber(text:match('"' .. field .. '": ([%d%.]+)'))
  if value and json then json:write(text:match("[^\n]*\n?$") or text) end
  return value
end

local function ampl_ms(w, t, p)
  local command = "OMP_NUM_THREADS=%d %s %s --step %s -t %d -p %s -s %s"
  return number_of(command:format(t, arg[-1], arg[0], w, t, p, options.s), "ms")
end

local function peer_ms(w, t, p, mode)
  local flags = mode == "eager" and "" or "--" .. mode
  if w == "d" and mode ~= "eager" then flags = flags .. " --channels-last" end
  local command = "cd %s && OMP_NUM_THREADS=%d %s -W ignore step.py -w %s -t %d --amp %s --seconds %s --min-steps 8 %s"
  return number_of(command:format(peer, t, python, w, t, p == "f32" and "fp32" or p, options.s, flags), "median_ms")
end

local function least(a, b) return a and b and math.min(a, b) or a or b end

print(("%-9s %-8s %-6s %12s %12s %8s"):format("workload", "threads", "dtype", "ampl ms", "peer ms", "ratio"))
for w in options.w:gmatch("%a") do
  for t in options.t:gmatch("%d+") do
    for p in options.p:gmatch("%w+") do
      local mine, other
      local threads = math.tointeger(tonumber(t))
      for _ = 1, tonumber(options.r) do
        mine = least(mine, ampl_ms(w, threads, p))
        for mode in options.m:gmatch("%a+") do
          if python then other = least(other, peer_ms(w, threads, p, mode)) end
        end
      end
      print(("%-9s %-8s %-6s %12s %12s %8s"):format(w, t, p, mine and ("%.3f"):format(mine) or "failed",
        other and ("%.3f"):format(other) or "-", mine and other and ("%.2f"):format(other / mine) or "-"))
    end
  end
end
local plain, graph = overhead()
print(("add of 16 f32 elements from Lua: %.0f ns, %.0f ns with a graph node"):format(plain, graph))
local probe = io.popen("build/spec/overhead_bench 2>/dev/null")
io.write(probe:read("a"))
probe:close()
