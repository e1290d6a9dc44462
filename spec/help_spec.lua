-- help knows every public name, in scripts too: how it is called, its defaults, and a sentence.

local ampl = require "ampl"

local function is_class(v) return type(v) == "table" and rawget(v, "__index") == v end

-- All public names of a table.
local function names(t)
  local out = {}
  for name, v in pairs(t) do
    local callable = type(v) == "function" or is_class(v)
    if type(name) == "string" and name:match("^%a") and callable then out[#out + 1] = name end
  end
  table.sort(out)
  return out
end

local function check(name)
  local text = ampl.help(name)
  local lines = {}
  for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
  assert(lines[1]:find("%(.*%)"), ("%s: no signature: %s"):format(name, text))
  assert(lines[2] and #lines[2] > 3 and lines[2]:find("^  "), ("%s: no sentence: %s"):format(name, text))
  return text
end

describe("help", function()
  it("knows every op, and its defaults", function()
    for _, op in ipairs(ampl.ops()) do
      check(op.name)
      for _, a in ipairs(op.args) do
        if a.required then assert.is_nil(a.default, op.name .. " " .. a.name) end
      end
    end
    local text = ampl.help("mse_loss")
    assert(text:find('mse_loss(x, target, reduction = "mean")', 1, true), text)
    assert(ampl.help("topk"):find("topk(x, k, dim = -1, largest = true, sorted = true)", 1, true))
    assert(ampl.help("gelu"):find('approximate = "none"', 1, true))
    assert(ampl.help("relu_"):find("in place: relu_", 1, true))
    assert.are.equal(ampl.help("softmax"), ampl.help(ampl.nn.functional.softmax))
    assert.are.equal(ampl.help("softmax"), ampl.help("F.softmax"))
  end)

  for _, path in ipairs({"nn", "optim", "optim.lr_scheduler", "amp", "data", "models", "nn.init", "nn.utils",
                         "safetensors"}) do
    it("knows every name of " .. path, function()
      local t = ampl
      for part in path:gmatch("[%w_]+") do t = t[part] end
      local list = names(t)
      assert(#list > 0)
      for _, name in ipairs(list) do
        check(name)
        check(path .. "." .. name)
        assert.are.equal(ampl.help(path .. "." .. name), ampl.help("ampl." .. path .. "." .. name))
      end
    end)
  end

  it("knows every function of ampl", function()
    for _, name in ipairs(names(ampl)) do check(name) end
  end)

  it("knows methods", function()
    for _, name in ipairs({"GradScaler.step", "GradScaler.update", "Module.load_state_dict", "nn.Module.apply",
                           "SGD.step", "StepLR.get_last_lr", "Accumulator.backward", "register_hook", "item"}) do
      check(name)
    end
    assert(ampl.help("Module.load_state_dict"):find("load_state_dict(state_dict, strict = true)", 1, true))
  end)

  it("tells ranges, choices and defaults as they are checked", function()
    local text = ampl.help("AdamW")
    for _, part in ipairs({"ampl.optim.AdamW(params, lr = 0.001, betas = {0.9, 0.999}, eps = 1e-08",
                           "each at least 0 and below 1", "lr               a number, at least 0"}) do
      assert(text:find(part, 1, true), text)
    end
    text = ampl.help("CrossEntropyLoss")
    for _, part in ipairs({"ignore_index = -100", 'reduction = "mean"', "label_smoothing = 0", "from 0 to 1",
                           '"none" or "mean" or "sum"'}) do
      assert(text:find(part, 1, true), text)
    end
    assert(ampl.help("ReLU"):find("ampl.nn.ReLU(inplace = false)", 1, true))
    assert(ampl.help("StepLR"):find("ampl.optim.lr_scheduler.StepLR(optimizer, step_size, gamma = 0.1", 1, true))
  end)

  it("takes the thing itself", function()
    local nn, optim = ampl.nn, ampl.optim
    assert.are.equal(ampl.help("Linear"), ampl.help(nn.Linear))
    assert.are.equal(ampl.help("Linear"), ampl.help(nn.Linear(1, 2)))
    assert.are.equal(ampl.help("clip_grad_norm_"), ampl.help(nn.utils.clip_grad_norm_))
    assert.are.equal(ampl.help("SGD"), ampl.help(optim.SGD({ampl.ones(1, {requires_grad = true})}, {lr = 1})))
    assert(ampl.help(ampl.ones(2)):find("^a tensor"))
    assert(ampl.help():find("help(", 1, true))
    for _, wrong in ipairs({"no_such_name", "", "a.b.c", "nn.", 5, true, {}, print, coroutine.create(print)}) do
      assert.are.equal("string", type(ampl.help(wrong)))
    end
    local Net = nn.Module:extend("Net")
    assert(ampl.help(Net()):find("Net", 1, true))
  end)
end)
