-- Ten training steps of whole models against PyTorch's: losses, and every tensor at the end, in f64 and f32 and,
-- softly, under autocast in bf16 and f16.  golden/models/README.md describes the traces and the tolerances.

local ampl = require "ampl"
local json = require "spec.support.json"
local folders = require "spec.support.folders"
local tensors = require "spec.support.tensors"
local tally = require("spec.support.tally")("golden models")
local reason = require "spec.support.pending"

local folder, missing = folders.golden("models", "models.jsonl")

local function lookup(t, ...)
  for _, name in ipairs {...} do
    local ok, v = pcall(function() return t[name] end)
    if not ok or v == nil then return nil end
    t = v
  end
  return t
end

-- ------------------------------------------------------------------------------------------------ inputs ----------

-- The fill rule of golden/models/README.md: element e (from 0) of the tensor at place p.
local function hash(p, e)
  local mask = 0xFFFFFFFF
  local h = (((p * 0x9E3779B1) & mask) + e * 0x85EBCA77) & mask
  h = ((h ~ (h >> 16)) * 0x7FEB352D) & mask
  h = ((h ~ (h >> 15)) * 0x846CA68B) & mask
  return h ~ (h >> 16)
end

local function filled(p, name, shape)
  local n, fan, list = 1, 1, {}
  for i, s in ipairs(shape) do n, fan = n * s, i > 1 and fan * s or fan end
  for e = 0, n - 1 do
    local x = hash(p, e) % 2001 - 1000
    local flat = #shape == 1
    if name:find("num_batches_tracked$") then x = 0
    elseif name:find("running_var$") then x = (2000 + x) / 2000
    elseif name:find("bn3%.weight$") then x = (4000 + x) / 16000
    elseif flat and name:find("weight$") then x = (4000 + x) / 4000
    elseif flat then x = x / 10000
    else x = x / math.floor(math.sqrt(fan * 333333)) end
    list[e + 1] = x + 0.0
  end
  return ampl.tensor(list, {dtype = "f64"}):view(shape)
end

-- x and y of step s: rows that are stored with the trace.
local function stored(trace, held, s, dtype)
  local first = (s - 1) * trace.batch + 1
  return held.x:narrow(1, first, trace.batch):to(dtype), held.y:narrow(1, first, trace.batch)
end

-- The one batch that the fill rule gives.
local function by_rule(trace, _, _, dtype)
  local n, x, y = 1, {}, {}
  for _, size in ipairs(trace.input_shape) do n = n * size end
  for e = 0, n - 1 do x[e + 1] = (hash(1000000, e) % 2001 - 1000) / 500 end
  n = 1
  for _, size in ipairs(trace.label_shape) do n = n * size end
  for e = 0, n - 1 do y[e + 1] = 1 + hash(1000001, e) % trace.classes end
  return ampl.tensor(x, {dtype = "f64"}):view(trace.input_shape):to(dtype), ampl.tensor(y):view(trace.label_shape)
end

-- What `data` says of windows of a text: its file, first byte, stride, length, and what an id is above its byte.
local function text_form(data)
  local file = data:match("^(%S+%.%w+)[: ]")
  local first, stride = data:match("byte (%d+) %+ %(%(s%-1%)%*batch %+ b%-1%)%*(%d+)")
  local length, above = data:match("x = (%d+) bytes"), data:match("token id = byte value %+ (%d+)")
  if not (file and first and length and above) then return nil end
  return {file = file, first = tonumber(first), stride = tonumber(stride), length = tonumber(length),
          above = tonumber(above)}
end

local texts = {}

local function text_windows(form)
  return function(trace, _, s)
    local text = texts[form.file] or assert(io.open(assert(folders.data(form.file)), "rb")):read("a")
    texts[form.file] = text
    local x, y = {}, {}
    for b = 1, trace.batch do
      local at = form.first + ((s - 1) * trace.batch + b - 1) * form.stride + 1
      local ids = {text:byte(at, at + form.length)}
      for i, id in ipairs(ids) do ids[i] = id + form.above end
      x[b], y[b] = {table.unpack(ids, 1, form.length)}, {table.unpack(ids, 2, form.length + 1)}
    end
    return ampl.tensor(x, {dtype = "i64"}), ampl.tensor(y, {dtype = "i64"})
  end
end

-- How a trace's inputs are made: a function, or nil and the reason's key and what it is about.
local function inputs_of(trace, held)
  local form = text_form(trace.data)
  if form then
    if not folders.data(form.file) then return nil, "data", form.file end
    return text_windows(form)
  end
  if held and held.x and held.y then return stored end
  if trace.input_shape and trace.label_shape and trace.classes then return by_rule end
  return nil, "no_form", trace.id
end

-- ------------------------------------------------------------------------------------------------ networks --------

local activations = {relu = "ReLU", gelu = "GELU", tanh = "Tanh", sigmoid = "Sigmoid", silu = "SiLU", elu = "ELU",
                     leaky_relu = "LeakyReLU", selu = "SELU", mish = "Mish", softplus = "Softplus"}
local pools = {max = "MaxPool2d", avg = "AvgPool2d"}

local function layer_of(list, name, what)
  return assert(ampl.nn[list[name]], ("no %s of the name %s"):format(what, tostring(name)))
end

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

-- One Sequential of convolution, batch norm, activation and pooling for each of `channels`, then a linear layer to as
-- many classes as its weights have.
local function cnn(a, x, state)
  local nn, list = ampl.nn, {}
  local from, height, width = x.shape[2], x.shape[3], x.shape[4]
  for _, to in ipairs(a.channels) do
    list[#list + 1] = nn.Conv2d(from, to, 3, {padding = 1})
    list[#list + 1] = nn.BatchNorm2d(to)
    list[#list + 1] = layer_of(activations, a.activation, "activation")()
    list[#list + 1] = layer_of(pools, a.pool or "max", "pooling")(2)
    from, height, width = to, height // 2, width // 2
  end
  list[#list + 1] = nn.Flatten()
  local weight = assert(state[#list .. ".weight"], "the last layer has no weights")
  list[#list + 1] = nn.Linear(from * height * width, weight.shape[1])
  return nn.Sequential(table.unpack(list))
end

local function mlp(a)
  local nn, list = ampl.nn, {}
  for i = 1, #a.sizes - 1 do
    if i > 1 then list[#list + 1] = layer_of(activations, a.activation, "activation")() end
    list[#list + 1] = nn.Linear(a.sizes[i], a.sizes[i + 1])
  end
  return nn.Sequential(table.unpack(list))
end

local networks = {mlp = mlp, cnn = cnn, char_rnn = char_rnn}

-- What makes the model, or nil.
local function network_of(kind)
  local class = lookup(ampl, "models", kind)
  return networks[kind] or class and function(a) return class(a) end
end

-- The tensors that stand with the trace; nil where it has none.
local function held_by(trace) return trace.tensors and assert(ampl.safetensors.load(folder .. "/" .. trace.tensors)) end

-- The state that a model starts with, f32 values; nil when it is given in a form that is not read here.
local function start_of(trace, held)
  local how, state = trace.weights, {}
  if how.from == "fill" then
    for p, entry in ipairs(how.state) do state[entry[1]] = filled(p, entry[1], entry[2]):to("f32") end
  elseif how.from == "tensors" then
    for name, t in pairs(held) do
      if name:sub(1, #how.prefix) == how.prefix then state[name:sub(#how.prefix + 1)] = t end
    end
  else
    return nil
  end
  for _, pair in ipairs(how.tied or {}) do state[pair[1]] = state[pair[2]] end
  return state
end

local function load_weights(model, state, dtype)
  local typed = {}
  for name, t in pairs(state) do typed[name] = tensors.floats[t.dtype] and t:to(dtype) or t end
  model:to(dtype)
  model:load_state_dict(typed)
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

-- nil, or what differs.
local function train(trace, mode, plan)
  local low = mode == "bf16" or mode == "f16"
  local dtype = low and "f32" or mode
  local model = plan.network(trace.model.args, plan.held and plan.held.x, plan.state)
  load_weights(model, plan.state, dtype)
  model:train()
  local opt = ampl.optim[trace.optimizer.name](model:parameters(), trace.optimizer.options)
  local sched = make_scheduler(trace, opt)
  local scaler = mode == "f16" and ampl.amp.GradScaler {init_scale = 2 ^ 16} or nil
  local loss_tol, final_tol = tolerances(trace, mode)
  for s = 1, trace.steps do
    local x, y = plan.inputs(trace, plan.held, s, dtype)
    local function forward()
      local out = model(x)
      if out.ndim == 3 then out, y = out:flatten(1, 2), y:flatten() end   -- rows of tokens
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

-- What a trace needs: its network, tensors, first state and inputs; nil, a reason's key and what it is about.
local function plan_of(trace)
  local kind = trace.model.kind
  local network = network_of(kind)
  if not network then return nil, "no_model", kind end
  local held = held_by(trace)
  local inputs, key, about = inputs_of(trace, held)
  if not inputs then return nil, key, about end
  local state = start_of(trace, held)
  if not state then return nil, "no_form", trace.id end
  return {network = network, held = held, inputs = inputs, state = state}
end

describe("golden models", function()
  if not folder then
    pending(reason("golden", missing))
    return
  end
  teardown(function() tally:report() end)
  for _, trace in ipairs(json.lines(folder .. "/models.jsonl")) do
    for _, mode in ipairs {"f64", "f32", "bf16", "f16"} do
      it(trace.id .. " " .. mode, function()
        local plan, key, about = plan_of(trace)
        if not plan then
          tally:skip(reason(key), about)
          pending(reason(key, about))
        end
        local ok, why = pcall(train, trace, mode, plan)
        if ok and why == nil then
          tally:pass()
        else
          tally:fail()
          error(tostring(why), 0)
        end
      end)
    end
  end
end)
