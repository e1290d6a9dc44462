-- Ten training steps of whole models against PyTorch's: losses, and every tensor at the end, in f64 and f32 and,
-- softly, under autocast in bf16 and f16.  golden/models/README.md describes the traces and the tolerances.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"
local tally = require("spec.support.tally")("golden models")

local folder, missing = folders.golden("models", "models.jsonl")

local function lookup(t, ...)
  for _, name in ipairs {...} do
    local ok, v = pcall(function() return t[name] end)
    if not ok or v == nil then return nil end
    t = v
  end
  return t
end

-- Traces that run here, and how their step's input is made; the others say why not.
local inputs = {}

local function stored(trace, tensors_of, s, dtype)
  local first = (s - 1) * trace.batch + 1
  return tensors_of.x:narrow(1, first, trace.batch):to(dtype), tensors_of.y:narrow(1, first, trace.batch)
end
inputs.mlp, inputs.cnn = stored, stored

local function text_windows(stride, length)
  local text
  return function(trace, _, s)
    if not text then
      local path = assert(folders.data("text/tinyshakespeare.txt"))
      text = assert(io.open(path, "rb")):read(1 << 20)
    end
    local x, y = {}, {}
    for b = 1, trace.batch do
      local at = ((s - 1) * trace.batch + b - 1) * stride + 1
      local ids = {text:byte(at, at + length)}
      for i, id in ipairs(ids) do ids[i] = id + 1 end
      x[b], y[b] = {table.unpack(ids, 1, length)}, {table.unpack(ids, 2, length + 1)}
    end
    return ampl.tensor(x, {dtype = "i64"}), ampl.tensor(y, {dtype = "i64"})
  end
end
inputs.gpt = text_windows(997, 64)
inputs.char_rnn = text_windows(613, 48)

-- An RNN over characters: embedding, rnn, fc.
local function char_rnn(a)
  local nn = ampl.nn
  local Net = nn.Module:extend("CharRNN")
  function Net:init()
    self.embedding = nn.Embedding(a.vocab, a.embed)
    self.rnn = nn[a.kind](a.embed, a.hidden, {num_layers = a.layers, batch_first = true})
    self.fc = nn.Linear(a.hidden, a.vocab)
  end
  function Net:forward(x) return self.fc((self.rnn(self.embedding(x)))) end
  return Net()
end

-- One Sequential of convolution, batch norm, activation and pooling for each of `channels`, then a linear layer.
local function cnn(a)
  local nn, list, from, side = ampl.nn, {}, 1, 8
  for _, to in ipairs(a.channels) do
    list[#list + 1] = nn.Conv2d(from, to, 3, {padding = 1})
    list[#list + 1] = nn.BatchNorm2d(to)
    list[#list + 1] = a.activation == "gelu" and nn.GELU() or nn.ReLU()
    list[#list + 1] = a.pool == "avg" and nn.AvgPool2d(2) or nn.MaxPool2d(2)
    from, side = to, side // 2
  end
  list[#list + 1] = nn.Flatten()
  list[#list + 1] = nn.Linear(from * side * side, 10)
  return nn.Sequential(table.unpack(list))
end

local function mlp(a)
  local nn, list = ampl.nn, {}
  for i = 1, #a.sizes - 1 do
    if i > 1 then list[#list + 1] = a.activation == "gelu" and nn.GELU() or nn.ReLU() end
    list[#list + 1] = nn.Linear(a.sizes[i], a.sizes[i + 1])
  end
  return nn.Sequential(table.unpack(list))
end

-- The model, or nil and what is missing.
local function build(kind, a)
  if not lookup(ampl, "nn", "Linear") then return nil, "nn.Linear" end
  local needs = {mlp = {"ReLU"}, cnn = {"Conv2d", "BatchNorm2d", "MaxPool2d"}, char_rnn = {a.kind, "Embedding"}}
  for _, name in ipairs(needs[kind] or {}) do
    if not lookup(ampl.nn, name) then return nil, "nn." .. name end
  end
  if kind == "mlp" then return mlp(a) end
  if kind == "cnn" then return cnn(a) end
  if kind == "char_rnn" then return char_rnn(a) end
  local class = lookup(ampl, "models", kind)
  if not class then return nil, "models." .. kind end
  return class(a)
end

local function load_weights(trace, model, stored_tensors, dtype)
  local state = {}
  for name, t in pairs(stored_tensors) do
    local key = name:match("^w%.(.*)$")
    if key then state[key] = tensors.floats[t.dtype] and t:to(dtype) or t end
  end
  for _, pair in ipairs(trace.weights.tied or {}) do state[pair[1]] = state[pair[2]] end
  model:to(dtype)
  model:load_state_dict(state)
end

local function widest(list)
  local worst = 0
  for _, v in ipairs(list) do worst = math.max(worst, v) end
  return worst
end

local function tolerances(trace, mode)
  if mode == "f64" then return 1e-9, 1e-8 end
  local gap = widest(trace.gap[mode])
  if mode == "f32" then return math.max(1e-5, 8 * gap), math.max(1e-5, 8 * trace.final_gap.f32) end
  if mode == "bf16" then return math.max(2e-2, 3 * gap) end
  return math.max(5e-3, 3 * widest(trace.gap.f16_low_scale or trace.gap.f16))
end

local function make_scheduler(trace, opt)
  if not trace.scheduler then return nil end
  return ampl.optim.lr_scheduler[trace.scheduler[1]](opt, trace.scheduler[2])
end

-- The tensors at the end as PyTorch's sums: worst of both measures, where the parameter's gradient is no mere rounding.
local function check_final(trace, model, mode, tol)
  local state, null = model:state_dict(), {}
  for _, name in ipairs(trace.null_gradient) do null[name] = true end
  for name, want in pairs(trace.final) do
    local sum, squares = 0, 0
    for _, v in ipairs(tensors.values(state[name])) do
      sum = sum + v
      squares = squares + v * v
    end
    local limit = null[name] and 1e-3 or tol
    if mode == "f64" or not null[name] then
      local e1 = math.abs(sum - want[1]) / math.max(math.abs(want[1]), math.sqrt(want[2]), 1e-300)
      local e2 = math.abs(squares - want[2]) / math.max(want[2], 1e-300)
      if math.max(e1, e2) > limit then
        return ("%s at the end: sum %.17g, sum of squares %.17g, expected %.17g and %.17g"):format(name, sum, squares,
                                                                                              want[1], want[2])
      end
    end
  end
end

local function train(trace, mode)
  local low = mode == "bf16" or mode == "f16"
  local dtype = low and "f32" or mode
  local model, lacks = build(trace.model.kind, trace.model.args)
  if not model then return false, lacks end
  if low and not lookup(ampl, "amp", "autocast") then return false, "amp.autocast" end
  local held = assert(ampl.safetensors.load(folder .. "/" .. trace.tensors))
  load_weights(trace, model, held, dtype)
  model:train()
  local opt = ampl.optim[trace.optimizer.name](model:parameters(), trace.optimizer.options)
  local sched = make_scheduler(trace, opt)
  local scaler = mode == "f16" and ampl.amp.GradScaler {init_scale = 2 ^ 16} or nil
  local loss_tol, final_tol = tolerances(trace, mode)
  for s = 1, trace.steps do
    local x, y = inputs[trace.model.kind](trace, held, s, dtype)
    local function forward()
      local out = model(x)
      if out.ndim == 3 then out, y = out:flatten(1, 2), y:flatten() end
      return ampl.nn.functional.cross_entropy(out, y)
    end
    if math.abs(opt.param_groups[1].lr - trace.lrs[s]) > 1e-12 then
      return ("step %d: lr %g, expected %g"):format(s, opt.param_groups[1].lr, trace.lrs[s])
    end
    opt:zero_grad()
    local loss = low and ampl.amp.autocast({dtype = mode}, forward) or forward()
    local got, want = loss:item(), trace.losses.f64[s]
    if scaler then scaler:scale(loss):backward() else loss:backward() end
    if not (math.abs(got - want) <= loss_tol * math.abs(want)) then         -- luacheck: ignore 581
      return ("step %d: loss %.12g, expected %.12g within %g"):format(s, got, want, loss_tol)
    end
    if scaler then scaler:unscale_(opt) end
    if trace.clip then
      local norm = ampl.nn.utils.clip_grad_norm_(model, trace.clip):item()
      local limit = mode == "f64" and 1e-7 or loss_tol * 20
      if trace.grad_norms and math.abs(norm - trace.grad_norms[s]) > limit * trace.grad_norms[s] then
        return ("step %d: gradient norm %.12g, expected %.12g"):format(s, norm, trace.grad_norms[s])
      end
    end
    local taken = true
    if scaler then
      taken = scaler:step(opt)
      scaler:update()
    else
      opt:step()
    end
    if sched and taken then sched:step() end
  end
  if not low then return check_final(trace, model, mode, final_tol) end
end

describe("golden models", function()
  if not folder then
    pending(missing)
    return
  end
  teardown(function() tally:report() end)
  for _, trace in ipairs(json.lines(folder .. "/models.jsonl")) do
    local kind = trace.model.kind
    for _, mode in ipairs {"f64", "f32", "bf16", "f16"} do
      it(trace.id .. " " .. mode, function()
        if not inputs[kind] then
          tally:skip("this spec does not make the model's inputs", trace.id)
          pending("not run")
        end
        local text_needed = kind == "gpt" or kind == "char_rnn"
        if text_needed and not folders.data("text/tinyshakespeare.txt") then
          tally:skip("the text is not there (AMPL_DATA)", trace.id)
          pending("no text")
        end
        local ok, why, lacks = pcall(train, trace, mode)
        if ok and why == false then
          tally:skip("there is no", lacks)
          pending("no " .. lacks)
        elseif ok and why == nil then
          tally:pass()
        else
          tally:fail()
          error(tostring(why), 0)
        end
      end)
    end
  end
end)
