-- Schedules of the learning rate: what their constructors refuse, where they resume, functions and states that are
-- wrong.  The rates are PyTorch's (torch 2.15, two groups of SGD with lr 0.5 and 0.25).

local ampl = require "ampl"
local raises = require "spec.support.raises"
local optim = ampl.optim
local S = optim.lr_scheduler

local function parameter() return ampl.zeros(1, {requires_grad = true}) end

local function optimizer()
  return optim.SGD({{params = {parameter()}, lr = 0.5}, {params = {parameter()}, lr = 0.25}}, {momentum = 0.9})
end

describe("schedules", function()
  -- class, options, the option that is refused
  local refused = {
    {"StepLR", {step_size = 0}, "step_size"}, {"StepLR", {step_size = -1}, "step_size"},
    {"StepLR", {step_size = 2, gamma = -1}, "gamma"}, {"StepLR", {step_size = 2, gamma = 0 / 0}, "gamma"},
    {"MultiStepLR", {milestones = {1, -2}}, "milestones"}, {"ExponentialLR", {gamma = -0.5}, "gamma"},
    {"ConstantLR", {factor = 0}, "factor"}, {"ConstantLR", {factor = 1.5}, "factor"},
    {"ConstantLR", {total_iters = 0}, "total_iters"}, {"LinearLR", {start_factor = 0}, "start_factor"},
    {"LinearLR", {end_factor = 1.5}, "end_factor"}, {"LinearLR", {total_iters = 0}, "total_iters"},
    {"PolynomialLR", {total_iters = 0}, "total_iters"}, {"PolynomialLR", {power = -1}, "power"},
    {"CosineAnnealingLR", {T_max = 0}, "T_max"}, {"CosineAnnealingLR", {T_max = 5, eta_min = -1}, "eta_min"},
    {"CosineAnnealingWarmRestarts", {T_0 = 0}, "T_0"},
    {"CosineAnnealingWarmRestarts", {T_0 = 1, T_mult = 0}, "T_mult"},
    {"OneCycleLR", {max_lr = 1, total_steps = 5, pct_start = 0.2}, "pct_start"},
    {"OneCycleLR", {max_lr = 1, total_steps = 5, pct_start = 1}, "pct_start"},
    {"OneCycleLR", {max_lr = 1, total_steps = 5, pct_start = 0.2, three_phase = true}, "pct_start"},
    {"OneCycleLR", {max_lr = 1, total_steps = 5, pct_start = 1.5}, "pct_start"},
    {"OneCycleLR", {max_lr = 1, total_steps = 0}, "total_steps"},
    {"OneCycleLR", {max_lr = 1, epochs = 3, steps_per_epoch = 0}, "steps_per_epoch"},
    {"OneCycleLR", {max_lr = 1, epochs = 1 << 40, steps_per_epoch = 1 << 40}, "epochs"},
    {"OneCycleLR", {max_lr = 1, total_steps = 5, div_factor = 0}, "div_factor"},
    {"OneCycleLR", {max_lr = 1, total_steps = 5, final_div_factor = 0}, "final_div_factor"},
    {"CyclicLR", {base_lr = 0.1, max_lr = 1, step_size_up = 0}, "step_size_up"},
    {"CyclicLR", {base_lr = 0.1, max_lr = 1, step_size_up = 1, step_size_down = -1}, "step_size_down"},
    {"CyclicLR", {base_lr = -0.1, max_lr = 1}, "base_lr"}, {"ReduceLROnPlateau", {factor = 1}, "factor"},
    {"ReduceLROnPlateau", {patience = -1}, "patience"},
    {"warmup", {warmup_steps = -1, total_steps = 5}, "warmup_steps"},
    {"warmup", {warmup_steps = 1, total_steps = 0}, "total_steps"},
  }
  it("that divide by zero, or never end, are refused by the option's name", function()
    for _, case in ipairs(refused) do raises("EVALUE", {case[1], case[3]}, S[case[1]], optimizer(), case[2]) end
  end)

  it("ask for an optimizer, and for schedulers of it", function()
    for name, class in pairs(S) do
      for _, wrong in ipairs({5, "sgd", {}, parameter(), ampl.nn.Linear(1, 1)}) do
        raises("EARG", {name}, class, wrong, {})
      end
    end
    local o = optimizer()
    raises("EARG", {"entry 2 of schedulers", "5"}, S.SequentialLR, o, {S.StepLR(o, 1), 5}, {3})
    raises("EARG", {"entry 1 of schedulers", "ReduceLROnPlateau"}, S.ChainedScheduler, {S.ReduceLROnPlateau(o)})
    raises("EARG", {"another optimizer"}, S.ChainedScheduler, {S.StepLR(o, 1), S.StepLR(optimizer(), 1)})
    raises("EVALUE", {"milestones must grow"}, S.SequentialLR, o, {S.StepLR(o, 1), S.StepLR(o, 1), S.StepLR(o, 1)},
           {5, 3})
  end)

  it("walk as far as one likes without a NaN, whatever the options", function()
    local ends = {
      {"CosineAnnealingLR", {T_max = 1}}, {"CosineAnnealingWarmRestarts", {T_0 = 1}},
      {"CosineAnnealingWarmRestarts", {T_0 = 1, T_mult = 1 << 62}},
      {"CyclicLR", {base_lr = 0, max_lr = 1, step_size_up = 1, step_size_down = 0}},
      {"PolynomialLR", {total_iters = 1, power = 0}}, {"LinearLR", {total_iters = 1, end_factor = 0}},
      {"ConstantLR", {total_iters = 1}}, {"warmup", {warmup_steps = 0, total_steps = 1}},
    }
    for _, case in ipairs(ends) do
      local s = S[case[1]](optimizer(), case[2])
      for step = 0, 20 do
        local lr = s:get_last_lr()[1]
        assert(lr >= 0 and lr <= 1, ("%s: lr is %s after step %d"):format(case[1], lr, step))
        s:step()
      end
    end
    for total = 1, 12 do
      for tenth = 0, 10 do
        local ok, s = pcall(S.OneCycleLR, optimizer(), {max_lr = 1, total_steps = total, pct_start = tenth / 10})
        for _ = 1, ok and total or 0 do
          local lr = s:get_last_lr()[1]
          assert(lr == lr and math.abs(lr) < math.huge, ("%d steps, pct_start %g: %s"):format(total, tenth / 10, lr))
          s:step()
        end
        local lr = ok and s:get_last_lr()[1]
        assert(lr == lr, "NaN at the end")
      end
    end
  end)
end)

describe("last_epoch", function()
  -- class, options, last_epoch, the rates of both groups after construction and five steps
  local resumed = {
    {"StepLR", {step_size = 3, gamma = 0.5}, 5,
     {0.25, 0.125, 0.25, 0.125, 0.25, 0.125, 0.125, 0.0625, 0.125, 0.0625, 0.125, 0.0625}},
    {"MultiStepLR", {milestones = {6, 8, 8}, gamma = 0.5}, 5,
     {0.25, 0.125, 0.25, 0.125, 0.0625, 0.03125, 0.0625, 0.03125, 0.0625, 0.03125, 0.0625, 0.03125}},
    {"ConstantLR", {factor = 0.5, total_iters = 7}, 5,
     {0.5, 0.25, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5}},
    {"LinearLR", {start_factor = 0.25, end_factor = 1.0, total_iters = 8}, 0,
     {0.5, 0.25, 0.6363636363636364, 0.3181818181818182, 0.7727272727272727, 0.38636363636363635, 0.9090909090909091,
      0.45454545454545453, 1.0454545454545454, 0.5227272727272727, 1.1818181818181817, 0.5909090909090908}},
    {"LinearLR", {start_factor = 0.25, end_factor = 1.0, total_iters = 8}, 5,
     {0.5, 0.25, 0.5576923076923077, 0.27884615384615385, 0.6153846153846154, 0.3076923076923077, 0.6153846153846154,
      0.3076923076923077, 0.6153846153846154, 0.3076923076923077, 0.6153846153846154, 0.3076923076923077}},
    {"ExponentialLR", {gamma = 0.9}, 5,
     {0.5, 0.25, 0.45, 0.225, 0.405, 0.2025, 0.36450000000000005, 0.18225000000000002, 0.32805000000000006,
      0.16402500000000003, 0.2952450000000001, 0.14762250000000005}},
    {"CosineAnnealingLR", {T_max = 20}, 5,
     {0.5, 0.25, 0.4578674910981346, 0.2289337455490673, 0.4122147477075269, 0.20610737385376346, 0.36416589188322224,
      0.18208294594161112, 0.31490404592062493, 0.15745202296031247, 0.26564219995802774, 0.13282109997901387}},
    {"CosineAnnealingLR", {T_max = 7, eta_min = 0.01}, 5,
     {0.5, 0.25, 0.01, 0.01, 0.03426262736390731, 0.021883735851709704, 0.10224499854461024, 0.05518122377695196,
      0.20048237118070295, 0.10329748792524227, 0.3095176288192968, 0.15670251207475766}},
    {"CosineAnnealingWarmRestarts", {T_0 = 4, T_mult = 2}, 5,
     {0.42677669529663687, 0.21338834764831843, 0.34567085809127246, 0.17283542904563623, 0.25, 0.125,
      0.15432914190872757, 0.07716457095436378, 0.07322330470336313, 0.03661165235168157, 0.019030116872178315,
      0.009515058436089158}},
    {"PolynomialLR", {total_iters = 9, power = 2.0}, 5,
     {0.5, 0.25, 0.22222222222222213, 0.11111111111111106, 0.05555555555555558, 0.02777777777777779, 0, 0, 0, 0, 0, 0}},
    {"CyclicLR", {base_lr = 0.1, max_lr = 0.9, step_size_up = 3, step_size_down = 4, mode = "triangular2"}, 5,
     {0.6, 0.4125, 0.1, 0.1, 0.23333333333333328, 0.23333333333333328, 0.3666666666666666, 0.3666666666666666,
      0.4999999999999999, 0.4999999999999999, 0.40000000000000024, 0.40000000000000024}},
    {"LambdaLR", {lr_lambda = function(n) return 1 / (n + 1) end}, 5,
     {0.07142857142857142, 0.03571428571428571, 0.0625, 0.03125, 0.05555555555555555, 0.027777777777777776, 0.05,
      0.025}},
  }

  local function check(s, last, want)
    assert.are.equal(last + 1, s.last_epoch)
    for at = 1, #want, 2 do
      local lr = s:get_last_lr()
      for i = 1, 2 do
        assert(math.abs(lr[i] - want[at + i - 1]) < 1e-12, ("step %d, group %d: %.17g, not %.17g"):format(
          at // 2, i, lr[i], want[at + i - 1]))
      end
      s:step()
    end
  end

  it("resumes every schedule where PyTorch does", function()
    for _, case in ipairs(resumed) do
      local o, options = optimizer(), {last_epoch = case[3]}
      for k, v in pairs(case[2]) do options[k] = v end
      for _, group in ipairs(o.param_groups) do group.initial_lr = group.lr end
      check(S[case[1]](o, options), case[3], case[4])
    end
  end)

  it("resumes a cycle, and a sequence", function()
    local o = optimizer()
    for _, group in ipairs(o.param_groups) do group.initial_lr = 0.04 end
    local want = {}
    for _, lr in ipairs({0.6473789976951033, 0.46263710266697505, 0.28306099820869923, 0.1334775301888306,
                         0.03456698742539522}) do
      want[#want + 1], want[#want + 2] = lr, lr
    end
    check(S.OneCycleLR(o, {max_lr = 1, total_steps = 12, last_epoch = 5}), 5, want)
    o = optimizer()
    local list = {S.ConstantLR(o, {factor = 0.5, total_iters = 3}), S.ExponentialLR(o, {gamma = 0.9})}
    check(S.SequentialLR(o, list, {8}, {last_epoch = 4}), 4,
          {0.25, 0.125, 0.25, 0.125, 0.25, 0.125, 0.5, 0.25, 0.45, 0.225, 0.405, 0.2025})
  end)

  it("needs initial_lr in every group", function()
    for _, case in ipairs(resumed) do
      local o, options = optimizer(), {last_epoch = case[3]}
      for k, v in pairs(case[2]) do options[k] = v end
      o.param_groups[1].initial_lr = 0.5
      raises("EARG", {case[1], "last_epoch", "parameter group 2", "initial_lr"}, S[case[1]], o, options)
    end
    raises("EVALUE", {"last_epoch"}, S.StepLR, optimizer(), {step_size = 1, last_epoch = -2})
  end)

  it("starts CyclicLR's groups from base_lr, for those made after it as well", function()
    local o = optimizer()
    S.CyclicLR(o, {base_lr = 0.125, max_lr = 1})
    assert.are.same({0.125, 0.125}, S.ExponentialLR(o, {gamma = 0.5}).base_lrs)
  end)
end)

describe("what a schedule meets on its way", function()
  it("are functions that return no number", function()
    raises("EARG", {"LambdaLR", "lr_lambda", "number"}, S.LambdaLR, optimizer(), function() end)
    raises("EARG", {"LambdaLR", "lr_lambda"}, S.LambdaLR, optimizer(), {5})
    raises("EARG", {"lr_lambda has 1 values for 2 parameter groups"}, S.LambdaLR, optimizer(),
           {function() return 1 end})
    raises("EARG", {"CyclicLR", "scale_fn"}, S.CyclicLR, optimizer(),
           {base_lr = 0.1, max_lr = 1, scale_fn = function() return "1" end})
  end)

  it("are groups whose rate is gone, and metrics that are no numbers", function()
    local o = optimizer()
    local s, plateau = S.ExponentialLR(o, {gamma = 0.5}), S.ReduceLROnPlateau(o)
    raises("EARG", {"step", "metric", "nil"}, plateau.step, plateau)
    raises("EARG", {"step", "metric", "a table"}, plateau.step, plateau, {})
    o.param_groups[2].lr = nil
    raises("EARG", {"ExponentialLR", "lr of parameter group 2", "nil"}, s.step, s)
    o.param_groups[2].lr = "0.1"
    raises("EARG", {"lr of parameter group 2", '"0.1"'}, plateau.step, plateau, 1.0)
  end)

  it("are states of something else", function()
    local s = S.StepLR(optimizer(), {step_size = 3})
    for _, state in ipairs({{}, {last_epoch = 0.5}, {last_epoch = -2}, {last_epoch = 1, base_lrs = 5},
                            {last_epoch = 1, base_lrs = {0.5}}, {last_epoch = 1, gamma = "x"}}) do
      raises("EARG", {"StepLR", "load_state_dict"}, s.load_state_dict, s, state)
    end
    raises("EVALUE", {"step_size"}, s.load_state_dict, s, {last_epoch = 1, step_size = 0})
    s:load_state_dict({last_epoch = 4, step = 5, step_size = 5})        -- what it does not know stays out of it
    s:step()
    assert.are.equal(5, s.last_epoch)
    assert.are.same({0.05, 0.025}, s:get_last_lr())
    raises("EARG", {"state"}, s.load_state_dict, s)
  end)

  it("are states of their own, of every class", function()
    local f = function(n) return 0.9 ^ n end
    local how = {
      StepLR = {step_size = 2}, MultiStepLR = {milestones = {2, 4}}, ExponentialLR = {gamma = 0.9},
      LambdaLR = {lr_lambda = f}, CosineAnnealingLR = {T_max = 4}, CosineAnnealingWarmRestarts = {T_0 = 3},
      OneCycleLR = {max_lr = 1, total_steps = 20},
      CyclicLR = {base_lr = 0.1, max_lr = 1, step_size_up = 2}, warmup = {warmup_steps = 3, total_steps = 9},
    }
    for name, class in pairs(S) do
      local composed = name == "SequentialLR" or name == "ChainedScheduler"
      local function make()
        local o = optimizer()
        if not composed then return class(o, how[name] or {}) end
        local list = {S.StepLR(o, 2), S.ExponentialLR(o, 0.9)}
        return name == "SequentialLR" and class(o, list, {3}) or class(list)
      end
      local a, b = make(), make()
      local function step(s) s:step(name == "ReduceLROnPlateau" and 1.0 or nil) end
      for _ = 1, 4 do step(a) end
      b:load_state_dict(a:state_dict())
      for _ = 1, 4 do
        step(a)
        step(b)
        assert.are.same(a:get_last_lr(), b:get_last_lr(), name)
      end
    end
  end)

  it("print what they are", function()
    local s = S.StepLR(optimizer(), {step_size = 3})
    s:step()
    assert.are.equal("StepLR(step_size = 3, gamma = 0.1; after step 1: lr = {0.5, 0.25})", tostring(s))
  end)
end)
