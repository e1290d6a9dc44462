-- What tables and objects print as, and that those which print are still the plain tables that they were.

local ampl = require "ampl"
local nn, optim, amp = ampl.nn, ampl.optim, ampl.amp

describe("a shape", function()
  it("prints as the list it is", function()
    local x = ampl.ones(2, 3)
    assert.are.equal("{2, 3}", tostring(x.shape))
    assert.are.equal("{2, 3}", tostring(x:size()))
    assert.are.equal("{3, 1}", tostring(x:stride()))
    assert.are.equal("{}", tostring(ampl.tensor(1).shape))
    assert.are.equal("shape {2, 3}!", "shape " .. x.shape .. "!")
    local show = getmetatable(x.shape).__tostring
    for _, v in ipairs {5, "x", print} do assert.are.equal("ampl.Size", show(v)) end
  end)

  it("is a plain list in all else", function()
    local shape = ampl.ones(2, 3, 4).shape
    assert.are.equal(3, #shape)
    local seen = {}
    for i, n in ipairs(shape) do seen[i] = n end
    assert.are.same({2, 3, 4}, seen)
    assert.are.same({2, 3, 4}, shape)
    assert.are.equal("2x3x4", table.concat(shape, "x"))
    assert.are.same({2, 3, 4}, {table.unpack(shape)})
    shape[2] = 1
    table.insert(shape, 5)
    table.sort(shape)
    assert.are.same({1, 2, 4, 5}, shape)
    assert.are.equal("{1, 2, 4, 5}", tostring(shape))
    local n = 0
    for _ in pairs(shape) do n = n + 1 end
    assert.are.equal(4, n)
  end)

  it("is fresh, and equal to another of the same numbers", function()
    local x, y = ampl.ones(2, 3), ampl.zeros(2, 3)
    x.shape[1] = 7
    assert.are.same({2, 3}, x.shape)
    assert.is_true(x.shape == y.shape)
    assert.is_true(x.shape == {2, 3})
    assert.is_false(x.shape == {3, 2})
    assert.is_false(x.shape == {2, 3, 1})
    assert.is_false(x.shape == 2)
    assert.is_false(rawequal(x.shape, x.shape))
  end)

  it("goes wherever a list of sizes does", function()
    local x = ampl.arange(6):view(2, 3)
    local shape = x.shape
    assert.are.same({2, 3}, ampl.zeros(shape).shape)
    assert.are.same({2, 3}, ampl.zeros(shape, {dtype = "f16"}).shape)
    assert.are.same({2, 3}, ampl.arange(6):view(shape).shape)
    assert.are.same({2, 3}, ampl.arange(6):reshape(shape):expand(shape).shape)
    assert.are.same({2, 3}, ampl.randint(0, 5, shape).shape)
    assert.are.same({2, 3}, ampl.full(shape, 5).shape)
    assert.are.same({2, 3}, ampl.tensor(shape):totable())
    assert.are.same({2, 3, 1}, x:unflatten(2, ampl.ones(3, 1).shape).shape)
    assert.are.same({2, 3}, nn.LayerNorm(shape).normalized_shape)
    assert.are.same({4, 3, 2, 3}, nn.Conv2d(3, 4, shape).weight.shape)
    assert.are.equal(5, x[shape]:item())                -- a position
    assert.are.same({3}, x:sum(ampl.ones(1).shape).shape)
    local data = ampl.ones(2, 3):tobytes()
    assert.are.same({2, 3}, ampl.from_bytes(data, shape).shape)
    ampl.scope(function() assert.are.same({2, 3}, x.shape) end)
  end)
end)

describe("a state", function()
  local model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))

  it("prints names, dtypes and shapes, and is a plain table in all else", function()
    local state = model:state_dict()
    local text = tostring(state)
    assert(text:find("0.weight: f32 {3, 2}", 1, true), text)
    assert(text:find("1.num_batches_tracked: i64 {}", 1, true), text)
    assert.are.equal(7, select(2, text:gsub("[^\n]+", "")))
    local n = 0
    for name, t in pairs(state) do
      n = n + 1
      assert(type(name) == "string" and t.dtype)
    end
    assert.are.equal(7, n)
    model:load_state_dict(state)
    local kept = ampl.scope(function() return nn.Linear(2, 3):state_dict() end)
    assert.are.same({3, 2}, kept.weight.shape)
    local path = os.tmpname()
    assert(ampl.safetensors.save(path, state))
    assert.are.same({3, 2}, ampl.safetensors.load(path)["0.weight"].shape)
    os.remove(path)
    assert(tostring(model:load_state_dict({}, {strict = false})):find("missing_keys: {\"0.bias\"", 1, true))
  end)

  it("of an optimizer, a scheduler and a scaler does, too", function()
    local o = optim.AdamW(model, {lr = 0.5})
    model(ampl.ones(4, 2)):sum():backward()
    o:step()
    local text = tostring(o:state_dict())
    for _, part in ipairs({"param_groups:", "lr: 0.5", "betas: {0.9, 0.999}", "params: {1, 2, 3, 4}", "state:",
                           "exp_avg: f32 {3, 2}", "step: f32 {}"}) do
      assert(text:find(part, 1, true), text)
    end
    local s = optim.lr_scheduler.StepLR(o, 2)
    assert(tostring(s:state_dict()):find("last_epoch: 0", 1, true))
    assert(tostring(amp.GradScaler():state_dict()):find("scale: 65536", 1, true))
    assert.are.equal("{}", tostring(amp.GradScaler({enabled = false}):state_dict()))
    local groups = tostring(o.param_groups)
    assert(groups:find("initial_lr: 0.5", 1, true) and groups:find("f32 {3, 2}", 1, true), groups)
    local p, q = ampl.ones(2, {requires_grad = true}), ampl.ones(1, {requires_grad = true})
    assert.are.equal(2, #optim.SGD({{params = {p}}, {params = {q}}}, {lr = 1}).param_groups)
    assert.are.equal(1, #optim.SGD(optim.SGD({p}, {lr = 1}).param_groups, {lr = 1}).param_groups[1].params)
  end)

  it("of many entries is elided", function()
    local list = {}
    for i = 1, 80 do list[i] = nn.Linear(1, 1) end
    local text = tostring(nn.Sequential(table.unpack(list)):state_dict())
    assert.are.equal(100, select(2, text:gsub("[^\n]+", "")))
    assert(text:find("... 61 more", 1, true), text)
  end)
end)

describe("objects", function()
  it("print what they are", function()
    local o = optim.SGD(nn.Linear(2, 3), {lr = 0.5})
    for _, case in ipairs({
      {o, "^SGD %(\n  group 1: 2 tensors, .*lr = 0.5"}, {optim.lr_scheduler.StepLR(o, 2), "^StepLR%(step_size = 2"},
      {amp.GradScaler(), "^GradScaler %(scale = 65536"},
      {amp.Accumulator({optimizer = o, steps = 4}), "SGD, steps = 4"},
      {nn.Linear(2, 3), "^Linear%(in_features = 2, out_features = 3"}, {nn.Linear, "^class Linear$"},
      {optim.SGD, "^class SGD$"}, {nn.Linear(1, 1):register_forward_hook(print), "^a hook of Linear"},
      {ampl.Function({forward = print, backward = print}), "^Function"}, {nn.Module:extend("Net")(), "^Net%(%)$"},
    }) do
      assert(tostring(case[1]):find(case[2]), tostring(case[1]))
    end
    for _, t in ipairs({nn, optim, optim.lr_scheduler}) do
      for name, class in pairs(t) do
        if type(class) == "table" and rawget(class, "__index") == class then
          assert.are.equal("class " .. class.name, tostring(class), name)
        end
      end
    end
  end)
end)
