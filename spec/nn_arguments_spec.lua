-- Wrong arguments of layers, optimisers and functions over parameters: error objects that name the option and what it
-- must be.

local ampl = require "ampl"
local raises = require "spec.support.raises"
local nn, optim, amp = ampl.nn, ampl.optim, ampl.amp

local function parameter(...) return ampl.ones(...):requires_grad_(true) end

describe("a constructor", function()
  -- class, arguments, code, texts
  local cases = {
    {"Linear", {-1, 2}, "EVALUE", "in_features (argument 1) must be at least 0, not -1"},
    {"Linear", {2, 2.5}, "EARG", "out_features (argument 2) must be an integer, not 2.5"},
    {"Linear", {2, {out_features = "3"}}, "EARG", 'out_features must be an integer, not "3"'},
    {"Linear", {2, 3, 1}, "EARG", "bias (argument 3) must be true or false, not 1"},
    {"Linear", {2, 3, {dtype = "i64"}}, "EDTYPE", 'dtype must be "f32", "f16", "bf16" or "f64", not "i64"'},
    {"Linear", {2, 3, {device = 1}}, "EARG", "device must be the name of a device, not 1"},
    {"Linear", {ampl.ones(2), 3}, "EARG", "in_features (argument 1) must be an integer, not a tensor"},
    {"Linear", {nn.ReLU(), 3}, "EARG", "not a module (ReLU)"}, {"Linear", {nn.ReLU, 3}, "EARG", "not the class ReLU"},
    {"Linear", {0 / 0, 3}, "EARG", "in_features"}, {"Linear", {math.huge, 3}, "EARG", "in_features"},
    {"Linear", {2, 3, {bias = {}}}, "EARG", "bias must be true or false, not a table"},
    {"Conv2d", {4, 6, 3, {groups = 4}}, "EVALUE", "out_channels 6 must be divisible by groups 4"},
    {"Conv2d", {4, 6, 0}, "EVALUE", "kernel_size (argument 3) must be at least 1, not 0"},
    {"Conv2d", {4, 6, {3, 0}, {stride = 1}}, "EVALUE", "entry 2 of kernel_size (argument 3) must be at least 1, not 0"},
    {"Conv2d", {4, 6, {3, nil, 3}, {stride = 1}}, "EARG", "kernel_size (argument 3) must be a list without holes"},
    {"Conv2d", {4, 6, {3, 3, 3}}, "EARG", "kernel_size (argument 3) must have 2 entries, not 3"},
    {"Conv2d", {4, 6, 3, {stride = 0}}, "EVALUE", "stride must be at least 1"},
    {"Conv2d", {4, 6, 3, {padding = -1}}, "EVALUE", "padding must be at least 0"},
    {"Conv2d", {4, 6, 3, {padding = "full"}}, "EARG", "padding"},
    {"Conv2d", {4, 6, 3, {padding_mode = "circle"}}, "EVALUE", 'padding_mode must be "zeros"'},
    {"ConvTranspose2d", {4, 6, 3, {output_padding = -1}}, "EVALUE", "output_padding"},
    {"BatchNorm2d", {-1}, "EVALUE", "num_features"}, {"BatchNorm2d", {2, {momentum = 2}}, "EVALUE", "momentum"},
    {"BatchNorm2d", {2, {eps = -1}}, "EVALUE", "eps"}, {"GroupNorm", {3, 4}, "EVALUE", "num_groups 3"},
    {"GroupNorm", {0, 4}, "EVALUE", "num_groups"},
    {"LayerNorm", {{}}, "EARG", "normalized_shape (argument 1) must not"},
    {"LayerNorm", {{2, "3"}}, "EARG", "must hold integers, but entry 2 is \"3\""},
    {"Embedding", {4, 2, {padding_idx = 5}}, "EINDEX", "rows count from 1 to 4"},
    {"Embedding", {4, 2, {padding_idx = 0}}, "EINDEX", "padding_idx is 0"},
    {"Dropout", {1.5}, "EVALUE", "p (argument 1) must be from 0 to 1, not 1.5"}, {"Dropout2d", {-0.5}, "EVALUE", "p"},
    {"Flatten", {0}, "EINDEX", "start_dim (argument 1) is 0; dimensions count from 1"},
    {"Softmax", {0}, "EINDEX", "dim"}, {"Softmax", {}, "EARG", "dim is missing"},
    {"Hardtanh", {1, -1}, "EVALUE", "max_val must be above min_val"},
    {"MaxPool2d", {0}, "EVALUE", "kernel_size"},
    {"AvgPool2d", {2, {divisor_override = 0}}, "EVALUE", "divisor_override"},
    {"AdaptiveAvgPool2d", {-1}, "EVALUE", "output_size"}, {"PixelShuffle", {0}, "EVALUE", "upscale_factor"},
    {"Upsample", {{mode = "cubic"}}, "EVALUE", "mode"}, {"Upsample", {{scale_factor = 0}}, "EVALUE", "scale_factor"},
    {"MSELoss", {{reduction = "avg"}}, "EVALUE", 'reduction must be "none" or "mean" or "sum", not "avg"'},
    {"KLDivLoss", {{reduction = "batch"}}, "EVALUE", "batchmean"},
    {"CrossEntropyLoss", {{label_smoothing = 2}}, "EVALUE", "label_smoothing"},
    {"CrossEntropyLoss", {ampl.ones(2, 3), ampl.ones(2)}, "EARG", "not a tensor"},
    {"HuberLoss", {{delta = 0}}, "EVALUE", "delta"}, {"TripletMarginLoss", {{margin = 0}}, "EVALUE", "margin"},
    {"MultiMarginLoss", {{p = 3}}, "EVALUE", "p must be from 1 to 2"},
    {"LSTM", {2, 0}, "EVALUE", "hidden_size"}, {"GRU", {2, 3, 0}, "EVALUE", "num_layers"},
    {"RNN", {2, 3, 1 << 40}, "EVALUE", "num_layers"}, {"LSTM", {2, 3, {dropout = 2}}, "EVALUE", "dropout"},
    {"RNN", {2, 3, {nonlinearity = "sin"}}, "EVALUE", "nonlinearity"},
    {"MultiheadAttention", {5, 2}, "EVALUE", "embed_dim 5 must be divisible by num_heads 2"},
    {"MultiheadAttention", {4, 0}, "EVALUE", "num_heads"}, {"TransformerEncoderLayer", {5, 2}, "EVALUE", "d_model 5"},
    {"TransformerEncoderLayer", {4, 2, {activation = 5}}, "EARG", "activation"},
    {"TransformerEncoder", {5, 2}, "EARG", "encoder_layer (argument 1) must be a module, not 5"},
    {"Sequential", {5}, "EARG", "entry 1 must be a module, not 5"}, {"ModuleList", {{nn.ReLU(), 1}}, "EARG", "entry 2"},
    {"Parameter", {5}, "EARG", "data (argument 1) must be a tensor, not 5"},
    {"Unflatten", {1, {}}, "EARG", "unflattened"},
    {"Linear", {2, 3, true, nil, nil, 6}, "EARG", "takes 5 arguments"},
    {"Linear", {2, 3, {biass = true}}, "EARG", 'unknown option "biass"; known are in_features, out_features, bias'},
  }
  it("refuses what its options cannot be", function()
    for _, case in ipairs(cases) do
      raises(case[3], {case[1] == "Parameter" and "Parameter" or case[1] .. ": ", case[4]}, nn[case[1]],
             table.unpack(case[2], 1, 9))
    end
  end)

  it("takes nil for what is not given, wherever it stands", function()
    assert.are.equal(3, nn.Linear(2, 3, nil, nil, nil).out_features)
    assert.are.equal(0.5, nn.Dropout(nil).p)
    assert.are.equal(0.5, nn.Dropout(0.5, nil, nil, nil).p)
    assert.are.equal(3, nn.Linear(2, {out_features = 3}, nil).out_features)
  end)

  it("takes plain tables that are shown, as shapes are", function()
    assert.are.same({2, 3}, nn.LayerNorm(ampl.ones(2, 3).shape).normalized_shape)
  end)
end)

describe("nil at the end", function()
  it("is not given, of ops, in-place forms, methods and functions", function()
    local F = nn.functional
    assert.are.same({0, 1}, ampl.tensor({-1, 1}):relu(nil):totable())
    assert.are.same({0, 1}, F.relu(ampl.tensor({-1, 1}), nil, nil):totable())
    assert.are.same({0, 1}, ampl.tensor({-1., 1.}):relu_(nil):totable())
    assert.are.same({2, 3}, ampl.zeros(2, 3, nil):size(nil))
    assert.are.same({1, 2}, ampl.tensor({{1, 2}}):sum({1}, nil, nil):totable())
    assert.are.equal(1, ampl.tensor({3., 4.}):softmax({dim = 1}, nil):sum():item())
    raises("EARG", {"relu", "x is missing"}, F.relu, nil)
  end)
end)

describe("inplace", function()
  it("writes into the input, of every layer that has it", function()
    local n = 0
    for name, class in pairs(nn) do
      local has = false
      for _, p in ipairs(type(class) == "table" and class.params or {}) do has = has or p[1] == "inplace" end
      if has then
        n = n + 1
        local x = ampl.tensor({{{{-0.5, 2}, {7, -3}}}}, {dtype = "f64"})
        ampl.manual_seed(3)
        local want = class()(x:clone())
        ampl.manual_seed(3)
        local y = class({inplace = true})(x)
        assert.are.same(want:totable(), y:totable(), name)
        assert.are.equal(x:data_ptr(), y:data_ptr(), name)
        assert.are.same(want:totable(), x:totable(), name)
      end
    end
    assert.are.equal(13, n)
  end)

  it("keeps the gradient", function()
    for _, name in ipairs({"ReLU", "SiLU", "SELU", "ReLU6", "Mish", "Hardswish", "Hardsigmoid", "ELU", "LeakyReLU",
                           "CELU",
                           "Hardtanh", "Dropout", "Dropout2d"}) do
      local grads = {}
      for _, inplace in ipairs({false, true}) do
        local x = ampl.tensor({{{{-0.5, 0.25}, {0.7, -0.3}}}}, {dtype = "f64", requires_grad = true})
        ampl.manual_seed(3)
        nn[name]({inplace = inplace})(x * 2):sum():backward()
        grads[#grads + 1] = x.grad:totable()
      end
      assert.are.same(grads[1], grads[2], name)
    end
  end)
end)

describe("a module", function()
  it("says what its methods need", function()
    local m = nn.Linear(2, 3)
    raises("EARG", {"Linear: load_state_dict", "state_dict is missing"}, m.load_state_dict, m)
    raises("EARG", {"load_state_dict", "must be a table, not 5"}, m.load_state_dict, m, 5)
    raises("EARG", {"strict"}, m.load_state_dict, m, m:state_dict(), "yes")
    raises("EARG", {"strickt"}, m.load_state_dict, m, m:state_dict(), {strickt = true})
    raises("EARG", {"mismatched: weight (a number)"}, m.load_state_dict, m, {weight = 1, bias = ampl.ones(3)})
    raises("EARG", {"to: needs a dtype, a device or a table", "not nil"}, m.to, m)
    raises("EDTYPE", {"to: ", "i64"}, m.to, m, "i64")
    raises("EDEVICE", {"to: ", '"gpu"'}, m.to, m, "gpu")
    raises("EDTYPE", {"float16"}, m.to, m, {dtype = "float16"})
    raises("EARG", {"to: unknown option"}, m.to, m, {dtyp = "f16"})
    raises("EARG", {"apply", "fn (argument 1) must be a function, not \"x\""}, m.apply, m, "x")
    raises("EARG", {"register_buffer", "name is missing"}, m.register_buffer, m)
    raises("EARG", {"register_buffer", "tensor (argument 2) must be a tensor, not 5"}, m.register_buffer, m, "b", 5)
    raises("EVALUE", {"register_buffer", '"a.b"'}, m.register_buffer, m, "a.b", ampl.ones(1))
    raises("EVALUE", {"register_buffer", '"forward"'}, m.register_buffer, m, "forward", ampl.ones(1))
    raises("EARG", {"add_module", "a module"}, m.add_module, m, "x", ampl.ones(1))
    raises("EARG", {"register_forward_hook", "a function"}, m.register_forward_hook, m, {})
    raises("EARG", {"register_forward_pre_hook", "a function"}, m.register_forward_pre_hook, m)
    raises("EARG", {"zero_grad", "set_to_none"}, m.zero_grad, m, {set_to_none = 1})
    raises("EARG", {"requires_grad_"}, m.requires_grad_, m, 1)
    raises("EARG", {"train", "mode"}, m.train, m, "on")
    raises("EARG", {"extend: name must be a string"}, nn.Module.extend, nn.Module)
    local freed = ampl.ones(2)
    freed:free()
    raises("EFREED", {"tensor (argument 2) is a tensor that was freed"}, m.register_buffer, m, "b", freed)
  end)

  it("says what its input must be", function()
    local made = {
      nn.Flatten(), nn.Unflatten(1, {1, -1}), nn.BatchNorm1d(2), nn.InstanceNorm2d(2), nn.Dropout2d(), nn.LSTM(2, 3),
      nn.GRU(2, 3),
      nn.RNN(2, 3), nn.TransformerEncoderLayer(2, 1), nn.MultiheadAttention(2, 1), nn.Linear(2, 3), nn.ReLU(),
      nn.Dropout({inplace = true}), nn.Conv2d(1, 1, 1), nn.Embedding(2, 3), nn.LayerNorm(2),
      ampl.models.gpt({layers = 1, d = 4, heads = 1, context = 4}),
    }
    for _, m in ipairs(made) do
      for _, wrong in ipairs({"x", {1, 2}, print}) do raises("EARG", {"tensor"}, m, wrong) end
      local ok, e = pcall(m)
      assert(not ok and type(e) == "table", m.name .. ": " .. tostring(e))
    end
  end)
end)

describe("an optimizer", function()
  local p = parameter(2)

  it("takes floats only", function()
    for _, dtype in ipairs({"i64", "i32", "u8", "bool"}) do
      raises("EDTYPE", {"SGD", "parameter 2", dtype}, optim.SGD, {p, ampl.zeros(1, {dtype = dtype})}, {lr = 1})
    end
    for _, dtype in ipairs({"f16", "bf16", "f64"}) do optim.SGD({parameter(1, {dtype = dtype})}, {lr = 1}) end
  end)

  it("refuses what is no parameter", function()
    raises("EARG", {"AdamW", "parameters must be a list of tensors, a module or a tensor, not nil"}, optim.AdamW)
    raises("EARG", {"must hold tensors, but entry 2 is 5"}, optim.AdamW, {p, 5})
    raises("EARG", {"not the class Linear"}, optim.AdamW, nn.Linear)
    raises("EARG", {"holes: entry 2 is nil"}, optim.AdamW, {p, nil, p})
    raises("EARG", {"parameter groups come in a list"}, optim.AdamW, {params = {p}})
    raises("EARG", {"has the field \"weight\""}, optim.AdamW, {weight = p})
    raises("EARG", {"parameter group 1: unknown option \"rate\""}, optim.AdamW, {{params = {p}, rate = 1}})
    raises("EVALUE", {"parameter group 1: lr must be at least 0, not -1"}, optim.AdamW, {{params = {p}, lr = -1}})
    raises("EARG", {"param_names must be a list of 1 names"}, optim.AdamW, {{params = {p}, param_names = {}}})
    raises("EARG", {"Optimizer", "derive"}, optim.Optimizer, {p})
    local freed = parameter(2)
    freed:free()
    raises("EFREED", {"freed"}, optim.AdamW, {freed})
  end)

  it("checks its options", function()
    for _, case in ipairs({
      {"SGD", "lr", -1}, {"SGD", "momentum", -0.1}, {"SGD", "weight_decay", -1}, {"SGD", "lr", 0 / 0},
      {"Adam", "eps", -1},
      {"Adadelta", "rho", 1.5}, {"Adagrad", "lr_decay", -1}, {"Adagrad", "initial_accumulator_value", -1},
      {"RMSprop", "alpha", -1}, {"NAdam", "momentum_decay", -1}, {"LBFGS", "max_iter", 0}, {"LBFGS", "history_size", 0},
      {"LBFGS", "line_search_fn", "armijo"},
    }) do
      raises("EVALUE", {case[1], case[2] .. " must be"}, optim[case[1]], {p}, {[case[2]] = case[3]})
    end
    for _, class in ipairs({"Adam", "AdamW", "Adamax", "NAdam", "RAdam", "LAMB", "Lion"}) do
      raises("EARG", {class, "betas must be a list of numbers, not 0.9"}, optim[class], {p}, {betas = 0.9})
      raises("EARG", {"betas must have 2 entries, not 1"}, optim[class], {p}, {betas = {0.9}})
      raises("EVALUE", {"entry 2 of betas must be at least 0 and below 1, not 1"}, optim[class], {p},
             {betas = {0.9, 1}})
      raises("EARG", {"must hold numbers, but entry 1 is \"x\""}, optim[class], {p}, {betas = {"x", 0.9}})
    end
    raises("EARG", {"lr (argument 1) must be a number, not true"}, optim.SGD, {p}, true)
  end)

  it("checks them again at every step, as anyone may write them", function()
    local w = parameter(2)
    w.grad = ampl.ones(2)
    local o = optim.AdamW({w}, {lr = 0.1})
    local group = o.param_groups[1]
    for _, case in ipairs({
      {"lr", nil, "EARG", "lr of parameter group 1 must be a number, not nil"}, {"lr", "0.1", "EARG", "lr"},
      {"lr", -1, "EVALUE", "lr of parameter group 1 must be at least 0, not -1"}, {"lr", 0 / 0, "EVALUE", "lr"},
      {"betas", {0.9}, "EARG", "betas of parameter group 1 must have 2 entries"}, {"betas", 0.9, "EARG", "betas"},
      {"eps", false, "EARG", "eps"}, {"amsgrad", 1, "EARG", "amsgrad of parameter group 1 must be true or false"},
      {"maximize", nil, "EARG", "maximize"}, {"params", 5, "EARG", "params of parameter group 1"},
      {"params", {5}, "EARG", "entry 1 of params of parameter group 1 must be a tensor, not 5"},
    }) do
      local was = group[case[1]]
      group[case[1]] = case[2]
      raises(case[3], {"AdamW", case[4]}, o.step, o)
      group[case[1]] = was
    end
    assert.are.same({1, 1}, w:totable())                -- nothing was written
    o:step()
    assert(w:sum():item() < 2)
    o.param_groups = nil
    raises("EARG", {"param_groups must be a list"}, o.step, o)
  end)

  it("steps with a function or without", function()
    local o = optim.SGD({parameter(2)}, {lr = 1})
    raises("EARG", {"SGD: step: closure must be a function, not 5"}, o.step, o, 5)
    raises("EARG", {"not a table"}, o.step, o, {closure = print})
    raises("EARG", {"set_to_none"}, o.zero_grad, o, {set_to_none = 5})
    local l = optim.LBFGS({parameter(2)})
    raises("EARG", {"LBFGS: step", "closure", "nil"}, l.step, l)
    raises("EARG", {"the closure must return the loss", "nil"}, l.step, l, function() end)
    raises("EARG", {"not a tensor"}, l.step, l, function() return ampl.ones(2) end)
  end)

  it("takes no state that does not fit, and then stays as it is", function()
    local w = parameter(2)
    w.grad = ampl.ones(2)
    local o = optim.Adam({w}, {lr = 0.5})
    o:step()
    local function state(change)
      local s = o:state_dict()
      change(s)
      return s
    end
    local m = ampl.ones(3)
    for _, case in ipairs({
      {function(s) s.param_groups = nil end, "EARG", "param_groups are missing"},
      {function(s) s.param_groups[1] = 5 end, "EARG", "param_groups[1]"},
      {function(s) s.param_groups[1].params = nil end, "EARG", "params"},
      {function(s) s.param_groups[1].params = {1, 2} end, "EARG", "group 1 has 2 parameters"},
      {function(s) s.param_groups[1].lr = "x" end, "EARG", "lr of group 1"},
      {function(s) s.param_groups[1].lr = -1 end, "EVALUE", "lr of group 1 must be at least 0"},
      {function(s) s.param_groups[1].betas = {0.9, 5} end, "EVALUE", "betas"},
      {function(s) s.state[1] = 5 end, "EARG", "the state of parameter 1"},
      {function(s) s.state[1].exp_avg = "x" end, "EARG", "exp_avg of parameter 1 must be a tensor or a number"},
      {function(s) s.state[1].exp_avg = m end, "EARG", "exp_avg of parameter 1 is {3}, it must be {2}"},
      {function(s) s.state[1].exp_avg = 1 end, "EARG", "exp_avg of parameter 1 is {}"},
      {function(s) s.state[1].step = m end, "EARG", "step of parameter 1 is {3}, it must be {}"},
    }) do
      raises(case[2], {"Adam", case[3]}, o.load_state_dict, o, state(case[1]))
      assert.are.equal(0.5, o.param_groups[1].lr)
      assert.are.equal(1, o.state[w].step:item())
    end
    raises("EARG", {"load_state_dict", "5"}, o.load_state_dict, o, 5)
    local l = optim.LBFGS({parameter(2)})
    local s = l:state_dict()
    s.memory.n_iter = 3
    raises("EARG", {"d of memory"}, l.load_state_dict, l, s)
  end)
end)

describe("functions over parameters", function()
  local u = nn.utils
  it("say what they need", function()
    local p = parameter(2)
    p.grad = ampl.ones(2)
    raises("EARG", {"clip_grad_norm_", "parameters is missing"}, u.clip_grad_norm_)
    raises("EARG", {"max_norm is missing"}, u.clip_grad_norm_, {p})
    raises("EVALUE", {"max_norm (argument 2) must be at least 0, not -1"}, u.clip_grad_norm_, {p}, -1)
    raises("EVALUE", {"norm_type", "above 0"}, u.clip_grad_norm_, {p}, 1, {norm_type = 0})
    raises("EARG", {'norm_type must be a number or "inf", not "two"'}, u.clip_grad_norm_, {p}, 1, {norm_type = "two"})
    raises("EARG", {"error_if_nonfinite"}, u.clip_grad_norm_, {p}, 1, 2, 1)
    raises("EARG", {"must hold tensors, but entry 1 is \"x\""}, u.clip_grad_norm_, {"x"}, 1)
    raises("EVALUE", {"clip_value"}, u.clip_grad_value_, {p}, -1)
    raises("EARG", {"clip_value (argument 2) must be a number"}, u.clip_grad_value_, {p}, "x")
    raises("EARG", {"get_total_norm", "tensors"}, u.get_total_norm, 5)
    raises("EARG", {"parameters_to_vector", "no parameters"}, u.parameters_to_vector, {})
    raises("EARG", {"vector_to_parameters", "vector"}, u.vector_to_parameters, {}, {p})
    raises("EARG", {"vector_to_parameters", "parameters is missing"}, u.vector_to_parameters, ampl.ones(2))
    raises("ESHAPE", {"have 2 entries, the vector is {3}"}, u.vector_to_parameters, ampl.ones(3), {p})
    raises("EARG", {"grad_stats", "model (argument 1) must be a module, not a table"}, u.grad_stats, {1})
    assert.are.equal(0, u.clip_grad_norm_({}, 1):item())
    assert.is_near(2 ^ 0.5, u.clip_grad_norm_(p, {max_norm = 1}):item(), 1e-6)
  end)

  it("fill tensors", function()
    local t = ampl.zeros(2, 3)
    raises("EARG", {"normal_", "tensor is missing"}, nn.init.normal_)
    raises("EARG", {"uniform_", "tensor (argument 1) must be a tensor, not 3"}, nn.init.uniform_, 3)
    raises("EVALUE", {"normal_", "std"}, nn.init.normal_, t, 0, -1)
    raises("EVALUE", {"trunc_normal_", "b must be above a"}, nn.init.trunc_normal_, t, {a = 1, b = 1})
    raises("EVALUE", {"trunc_normal_", "std"}, nn.init.trunc_normal_, t, {std = 0})
    raises("EVALUE", {"sparse_", "sparsity"}, nn.init.sparse_, t, 1.5)
    raises("EVALUE", {"dirac_", "groups"}, nn.init.dirac_, ampl.zeros(2, 2, 3), 0)
    raises("EVALUE", {"nonlinearity", "leaky_relu"}, nn.init.kaiming_normal_, t, {nonlinearity = "sine"})
    raises("EVALUE", {"calculate_gain", "nonlinearity"}, nn.init.calculate_gain, "sine")
    raises("EARG", {"constant_", "val is missing"}, nn.init.constant_, t)
    assert.are.same({0, 3}, nn.init.orthogonal_(ampl.zeros(0, 3)).shape)
  end)
end)

describe("modes and regions", function()
  it("take a function, or nothing", function()
    for _, name in ipairs({"no_grad", "enable_grad", "inference_mode", "scope"}) do
      raises("EARG", {name, "fn must be a function, not 5"}, ampl[name], 5)
      raises("EARG", {name, "not a tensor"}, ampl[name], ampl.ones(1))
      raises("EARG", {name, "false"}, ampl[name], false)
    end
    for _, name in ipairs({"fork_rng", "detect_anomaly"}) do
      raises("EARG", {name, "fn must be a function, not nil"}, ampl[name])
    end
    raises("EARG", {"set_detect_anomaly", "on is missing"}, ampl.set_detect_anomaly)
    raises("EARG", {"check_nan"}, ampl.set_detect_anomaly, false, {check_nan = 1})
    raises("EARG", {"gradcheck", "fn is missing"}, ampl.gradcheck)
    raises("EARG", {"gradcheck", "inputs (argument 2)"}, ampl.gradcheck, print, 5)
    raises("EVALUE", {"gradgradcheck", "eps"}, ampl.gradgradcheck, print, {}, {eps = 0})
    raises("EARG", {"is_available", "device is missing"}, ampl.is_available)
    raises("EARG", {"memory", "device"}, ampl.memory, 5)
    raises("EARG", {"ops", "name"}, ampl.ops, print)
    assert(ampl.is_grad_enabled())
  end)

  it("of mixed precision, too", function()
    local o = optim.SGD({parameter(2)}, {lr = 1})
    raises("EARG", {"autocast", "not 5"}, amp.autocast, 5)
    raises("EARG", {"autocast", "a module (Linear)"}, amp.autocast, nn.Linear(1, 1))
    raises("EARG", {"is_autocast_enabled", "device"}, amp.is_autocast_enabled, {1})
    raises("EARG", {"get_autocast_dtype", "device"}, amp.get_autocast_dtype, 5)
    raises("EARG", {"custom_fwd", "fn must be a function"}, amp.custom_fwd, 5)
    raises("EARG", {"custom_fwd", "unknown option"}, amp.custom_fwd, print, {cast = "f16"})
    raises("EDTYPE", {"custom_fwd", "cast_inputs"}, amp.custom_fwd, print, {cast_inputs = "f64"})
    raises("EARG", {"custom_bwd"}, amp.custom_bwd)
    raises("EARG", {"initialize", "models must be a module or a list of them, not 5"}, amp.initialize, 5, o)
    raises("EARG", {"initialize", "entry 1 of optimizers must be an optimizer, not 5"}, amp.initialize,
           nn.Linear(1, 1), {5})
    raises("EVALUE", {"initialize", "opt_level"}, amp.initialize, nn.Linear(1, 1), o, {opt_level = "O4"})
    raises("EARG", {"initialize", "options must be a table"}, amp.initialize, nn.Linear(1, 1), o, "O1")
    raises("EARG", {"scale_loss", "loss must be a tensor"}, amp.scale_loss, 5, o, print)
    raises("EARG", {"scale_loss", "fn"}, amp.scale_loss, ampl.ones(1), o)
    raises("ESTATE", {"master_params"}, amp.master_params)
    raises("EARG", {"Accumulator", "optimizer must be an optimizer, not 5"}, amp.Accumulator, {optimizer = 5})
    raises("EVALUE", {"Accumulator", "steps"}, amp.Accumulator, {optimizer = o, steps = 0})
    raises("EARG", {"Accumulator", "scaler must be a GradScaler"}, amp.Accumulator, {optimizer = o, scaler = 5})
    raises("EARG", {"backward", "loss must be a tensor, not 5"},
           function() amp.Accumulator({optimizer = o}):backward(5) end)
    raises("EVALUE", {"GradScaler", "retry"}, amp.GradScaler, {retry = -1})
  end)
end)

describe("recurrent layers", function()
  it("refuse sequences without a step, and states of another shape", function()
    for _, name in ipairs({"LSTM", "GRU", "RNN"}) do
      local m = nn[name](3, 4)
      raises("ESHAPE", {name, "the length of the sequences must be at least 1, the input is {0, 2, 3}"}, m,
             ampl.zeros(0, 2, 3))
      raises("ESHAPE", {name, "{0, 3}"}, m, ampl.zeros(0, 3))
      raises("ESHAPE", {name, "{2, 0, 3}"}, nn[name](3, 4, {batch_first = true}), ampl.zeros(2, 0, 3))
      raises("ESHAPE", {name, "(length, batch, 3)"}, m, ampl.zeros(2, 2, 2))
      local function state(...)
        local h = ampl.zeros(...)
        return name == "LSTM" and {h, h} or h
      end
      raises("ESHAPE", {name, "state must be {1, 2, 4}, not {1, 3, 4}"}, m, ampl.zeros(5, 2, 3), state(1, 3, 4))
      raises("ESHAPE", {name, "state must be {1, 4}, not {1, 1, 4}"}, m, ampl.zeros(5, 3), state(1, 1, 4))
      raises("EARG", {name, "state", "a tensor"}, m, ampl.zeros(5, 2, 3), name == "LSTM" and {1, 2} or 5)
      raises("EARG", {name}, m, ampl.zeros(5, 2, 3), false)
    end
    raises("EARG", {"LSTM", "{h, c}"}, nn.LSTM(3, 4), ampl.zeros(5, 2, 3), ampl.zeros(1, 2, 4))
  end)

  it("work on no sequences", function()
    for _, name in ipairs({"LSTM", "GRU", "RNN"}) do
      local m = nn[name](3, 4, 2, {bidirectional = true})
      local y, h = m(ampl.zeros(5, 0, 3))
      assert.are.same({5, 0, 8}, y.shape)
      assert.are.same({4, 0, 4}, (name == "LSTM" and h[2] or h).shape)
      y:sum():backward()
      assert.are.equal(0, m.weight_ih_l0.grad:abs():sum():item())
    end
  end)
end)
