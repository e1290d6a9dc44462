-- What broadcasts where PyTorch's does, with its values: batches of attention, losses, variances, operands of rank 0.
-- The numbers are those of PyTorch 2.15 in f64; an operand of n elements holds sin(1.7), sin(3.4) ... sin(1.7 n), and
-- results without a reduction get such a gradient, too.
local ampl = require "ampl"
local F = ampl.nn.functional
local attend = F.scaled_dot_product_attention

local function double(values) return ampl.tensor(values, {dtype = "f64"}) end

-- spec: the sizes, and what becomes of the sines: by (a factor), abs, square.
local function wave(spec)
  local n, shape = 1, {table.unpack(spec)}
  for _, s in ipairs(shape) do n = n * s end
  local x = ampl.sin(ampl.arange(1, n + 1, {dtype = "f64"}) * 1.7):reshape(shape)
  if spec.by then x = x * spec.by end
  if spec.abs then x = x:abs() end
  return spec.square and x * x or x
end

local function close(want, x, what)
  local got = x:detach():flatten():totable()
  assert.equal(#want, #got, what)
  for i, v in ipairs(want) do
    local near = math.abs(v - got[i]) <= 1e-9 * math.max(1, math.abs(v))
    assert(near, ("%s: value %d is %.12g, not %.12g"):format(what, i, got[i], v))
  end
end

-- name, operands, the call, its values, the gradients of the operands
local function cases()
  return {
    {"attention q without batch", {{2, 3}, {2, 2, 3}, {2, 2, 2}}, attend,
      {0.295077603973, 0.0167954227296, -0.0875608754859, 0.166391098281, 0.219783183797, -0.0629940432284,
      0.361225450752, -0.218655405856},
      {{0.245493196124, 0.0179273711083, -0.250112882253, -0.245334855954, 0.0461400219681, 0.233445080359},
      {0.126581713979, -0.314812629247, -0.0454579659525, -0.126581713979, 0.314812629247, 0.0454579659525,
      0.172588574086, -0.297135485452, -0.0960200313655, -0.172588574086, 0.297135485452, 0.0960200313655},
      {0.226676862737, 0.0533013456941, -0.160826734612, 0.185270903418, 0.0449577313107, 0.179999541961,
      0.135392269076, -0.0207124146977}}},
    {"attention k v without heads", {{2, 1, 2}, {3, 2}, {1, 3, 1}}, attend,
      {0.026391600894, -0.16429273478},
      {{0.095839731444, 0.113627251335, -0.0260259366503, -0.000467076444073}, {0.338364264259, -0.095365418157,
      -0.0311845953816, 0.0109773599316, -0.307179668877, 0.0843880582254}, {0.417029498013, -0.0745609048659,
      0.393655115279}}},
    {"attention masked", {{2, 1, 2, 2}, {1, 2, 2, 2}, {2, 2, 1}, {2, 1, 1, 2}},
      function(q, k, v, m) return attend(q, k, v, {mask = m}) end,
      {0.915104077284, 0.284384969783, -0.820297593236, -0.136349997567, 0.378569971591, -0.177985614472,
      -0.269515715788, 0.425885352295},
      {{0.187205486591, -0.137465297914, -0.279584627045, 0.232414513654, 0.556018298028, -0.372453673198,
      -0.124916006694, 0.0885000905996}, {0.263973586491, -0.194315862006, -0.263973586491, 0.194315862006,
      0.324372098302, -0.218727523526, -0.324372098302, 0.218727523526}, {1.18261524366, -0.347879110201,
      -0.928771836862, 0.738095208292}, {-0.0897536030571, 0.0897536030571, 0.360366501414, -0.360366501414}}},
    {"attention gqa", {{1, 4, 1, 2}, {2, 2, 2, 2}, {2, 1, 2, 1}},
      function(q, k, v) return attend(q, k, v, {enable_gqa = true}) end,
      {0.760402418568, -0.0312009478225, 0.777123205089, -0.0400994386435, -0.466257660112, 0.123981063281,
      -0.439434533418, 0.0895333100535},
      {{0.157514787028, 0.245153738967, 0.0101594853066, -0.240672705889, -0.230108956417, -0.0774254018265,
      0.170414883718, 0.22825679328}, {0.161773145412, -0.0501827575575, -0.161773145412, 0.0501827575575,
      -0.131347718527, 0.134888871839, 0.131347718527, -0.134888871839, -0.299411327977, 0.111761806718,
      0.299411327977, -0.111761806718, 0.22024706591, -0.248825760007, -0.22024706591, 0.248825760007},
      {0.0806155041177, 0.223806873119, 0.196021755178, 0.143615372471}}},
    {"triplet", {{2, 3}, {1, 3}, {2, 3, by = 2}},
      function(a, p, n) return F.triplet_margin_loss(a, p, n, {reduction = "none"}) end,
      {0, 1.0161255263},
      {{0, 0, 0, -0.000724357323959, -0.401094828725, 0.104082084758}, {-0.107090885579, 0.22686527549,
      0.0486306881275}, {-0, 0, 0, 0.107815242903, 0.174229553235, -0.152712772886}}},
    {"triplet swap", {{1, 3}, {2, 3}, {2, 1}}, function(a, p, n) return F.triplet_margin_loss(a, p, n,
    {swap = true}) end,
      {0.409817286209},
      {{0.209538571463, -0.44389159918, -0.095151643426}, {-0, 0, 0, -0.483611002699, 0.0585407713655,
      0.257598686917}, {0, 0.49697621556}}},
    {"triplet 0-d", {{}, {by = 2}, {}}, F.triplet_margin_loss,
      {1.99166281045},
      {{-2}, {1}, {1}}},
    {"cosine 0-d", {{}, {by = -3}}, function(a, b) return F.cosine_similarity(a, b, {dim = 1}) end,
      {-1},
      {{0}, {0}}},
    {"cosine 0-d 1-d", {{}, {3}}, function(a, b) return F.cosine_similarity(a, b, {dim = -1}) end,
      {-0.0793311221397},
      {{0}, {0.459490897101, 0.407575416899, 0.379674992085}}},
    {"cosine_embedding rows", {{2, 3}, {1, 3}},
      function(a, b) return F.cosine_embedding_loss(a, b, double {1, -1}, {margin = -1, reduction = "none"}) end,
      {5.2480242374e-13, 1.57763399468},
      {{-2.70783395706e-13, 6.97775170977e-14, 2.52853293858e-13, -0.10356147558, 0.126324555406, 0.0710090286634},
      {-0.00129201749767, -0.145997909694, 0.038914071183}}},
    {"cosine_embedding target", {{2, 3}, {2, 3, square = true}},
      function(a, b) return F.cosine_embedding_loss(a, b, double {1}) end,
      {0.808471436864},
      {{-0.248885697029, -0.0242410510002, -0.259897155743, -0.0715310231173, -0.239081312629, -0.323268985943},
      {-0.248611479026, 0.072610277219, 0.279703161878, -0.20064606392, -0.27406156437, 0.456743037189}}},
    {"ranking", {{2, 3}, {1, 3}},
      function(a, b) return F.margin_ranking_loss(a, b, double {{1}, {-1}}, {margin = 0.5}) end,
      {0.630402791678},
      {{-0.166666666667, -0.166666666667, -0.166666666667, 0.166666666667, 0.166666666667, 0.166666666667}, {0, 0,
      0}}},
    {"hinge", {{2, 3}}, function(a) return F.hinge_embedding_loss(a, double {1, -1, 1}) end,
      {0.219523796846},
      {{0.166666666667, -0.166666666667, 0.166666666667, 0.166666666667, -0.166666666667, 0.166666666667}}},
    {"soft_margin", {{2, 3}}, function(a) return F.soft_margin_loss(a, double {{1}, {-1}}) end,
      {0.824640843074},
      {{-0.0450972286425, -0.0939233136236, -0.119370900729, 0.10351249215, 0.114941794479, 0.0553066686318}}},
    {"poisson", {{1, 3}, {2, 3, abs = true}}, F.poisson_nll_loss,
      {1.33898158509},
      {{0.650943172803, 0.0824943983907, -0.138878727157}, {-0.165277468409, 0.0425901836711, 0.154302447055,
      -0.165277468409, 0.0425901836711, 0.154302447055}}},
    {"kl", {{2, 3}, {1, 3, abs = true}}, function(a, b) return F.kl_div(a, b, {reduction = "batchmean"}) end,
      {-0.481842308202},
      {{-0.495832405226, -0.127770551013, -0.462907341164, -0.495832405226, -0.127770551013, -0.462907341164},
      {0.24874079772, -0.635845018585, 1.73576349352}}},
    {"gaussian rows", {{2, 3}, {2, 3, by = 2}, {2, abs = true}}, F.gaussian_nll_loss,
      {0.264240062489},
      {{-0.166666666667, 0.0429481647652, 0.155599397526, -0.322266064193, -0.520781918767, 0.456465830117},
      {0.166666666667, -0.0429481647652, -0.155599397526, 0.322266064193, 0.520781918767, -0.456465830117},
      {0.0906008267873, -0.771974630852}}},
    {"gaussian column", {{2, 3}, {1, 3, by = 2}, {2, 1, abs = true}}, F.gaussian_nll_loss,
      {1.53204703088},
      {{-0.166666666667, 0.0429481647652, 0.155599397526, -0.971282935149, 0.8541152521, 0.751186839695},
      {1.13794960182, -0.897063416865, -0.906786237221}, {0.0906008267873, -5.73323901586}}},
    {"gaussian row", {{2, 3}, {3, by = 2}, {1, 3, abs = true}},
      function(a, b, v) return F.gaussian_nll_loss(a, b, v, {reduction = "none"}) end,
      {0.491647344484, -0.55441545563, 0.424366745444, 1.11401792214, 2.67338337452, 0.677876448347},
      {{-0.991664810452, -0.255541102027, -0.925814682328, -0.742026573766, 4.09200012898, -0.87067526599},
      {1.73369138422, -3.83645902695, 1.79648994832}, {-0.30386223984, -9.29500285796, 0.126508992766}}},
    {"gaussian scalar", {{3}, {3, by = 2}, {abs = true}},
      function(a, b, v) return F.gaussian_nll_loss(a, b, v, {full = true}) end,
      {1.23506216902},
      {{-0.333333333333, 0.0858963295303, 0.311198795053}, {0.333333333333, -0.0858963295303, -0.311198795053},
      {0.181201653575}}},
    {"gaussian planes", {{2, 2, 2}, {2, 2, 2, by = 2}, {2, 1, 2, abs = true}}, F.gaussian_nll_loss,
      {0.146496227304},
      {{-0.125, 0.125, 0.116699548145, -0.241699548145, -0.107808712676, 0.1770531716, 0.0834585371182,
      -0.217349372587}, {0.125, -0.125, -0.116699548145, 0.241699548145, 0.107808712676, -0.1770531716,
      -0.0834585371182, 0.217349372587}, {0.00907551796242, 0.192983413944, 0.0606640374788, -0.0613759114499}}},
    {"linear bias rows", {{2, 2, 3}, {2, 3}, {2, 2}}, F.linear,
      {2.89749798758, 0.678361705522, 0.00808812522078, 1.86566760227, -0.208179416455, -0.152609949872,
      -2.76674631486, -0.799629530902},
      {{0.857132826014, -0.457457395218, -0.739251092516, -0.673949837691, 0.631126847254, 0.51131539875,
      0.446014143925, -0.762887195209, -0.249426514182, -0.188461498731, 0.843989075686, -0.0290251925643},
      {0.626642652458, -0.214530746657, -0.571360441331, -0.402640610336, -0.269475482311, 0.472081474822},
      {1.79015192308, -0.95541578962, -1.54395179456, 1.353275166}}},
    {"linear bias column", {{2, 3}, {3, 3}, {2, 1}}, F.linear,
      {2.89749798758, 1.925567618, -0.208179416455, 0.678361705522, 1.11601314911, -0.152609949872},
      {{1.42941324021, -1.25288201791, -1.1065593402, 1.31715648408, -0.0899902080153, -1.29396699839},
      {1.22754710006, 0.141132024555, -1.26391526873, 0.141132024555, 0.702882923851, -0.3222572143,
      -1.26391526873, -0.3222572143, 1.34695740435}, {-0.189690973902, 0.592725776169}}},
    {"linear bias number", {{2, 3}, {2, 3}, {}}, F.linear,
      {2.89749798758, 1.925567618, 1.925567618, 2.36321906159},
      {{0.857132826014, -0.457457395218, -0.739251092516, -0.673949837691, 0.631126847254, 0.51131539875},
      {0.525941701071, -0.992662211021, -0.270143579901, -0.00926311473083, 0.459844397884, -0.109233723069},
      {0.304422377237}}},
    {"linear bias of one", {{3}, {2, 3}, {1}}, F.linear,
      {2.89749798758, 1.925567618},
      {{0.857132826014, -0.457457395218, -0.739251092516}, {0.98339909629, -0.253411118504, -0.918097841465,
      -0.253411118504, 0.0653012548251, 0.236583704195}, {0.736123708426}}},
  }
end

local function refuses(code, pattern, fn)
  local ok, e = pcall(fn)
  assert(not ok, "no error")
  assert.equal(code, e.code)
  assert(tostring(e):find(pattern), tostring(e))
end

describe("broadcasting", function()
  for _, c in ipairs(cases()) do
    it("of " .. c[1], function()
      local operands = {}
      for i, spec in ipairs(c[2]) do operands[i] = wave(spec):detach():requires_grad_(true) end
      local y = c[3](table.unpack(operands))
      close(c[4], y, "result")
      y:backward(y:dim() > 0 and wave(y.shape) or nil)
      for i, x in ipairs(operands) do close(c[5][i], x.grad, "gradient " .. i) end
    end)
  end

  it("of attention gives the shapes that PyTorch gives", function()
    local function shape(...) return table.concat(attend(...).shape, ",") end
    local ones = ampl.ones
    assert.equal("4,4,3,8", shape(ones(4, 3, 8), ones(4, 4, 6, 8), ones(4, 4, 6, 8)))
    assert.equal("2,4,3,8", shape(ones(2, 4, 3, 8), ones(4, 6, 8), ones(6, 8)))
    assert.equal("2,4,3,8", shape(ones(2, 1, 3, 8), ones(1, 4, 6, 8), ones(2, 4, 6, 8)))
    assert.equal("2,8,3,8", shape(ones(1, 8, 3, 8), ones(2, 2, 6, 8), ones(2, 2, 6, 8), {enable_gqa = true}))
    assert.equal("2,4,3,8", shape(ones(4, 3, 8), ones(2, 1, 3, 8), ones(2, 1, 3, 8), {is_causal = true}))
    assert.equal("2,4,3,8", shape(ones(2, 4, 3, 8), ones(2, 4, 6, 8), ones(2, 4, 6, 8), {mask = ones(3, 1)}))
    refuses("ESHAPE", "broadcast", function() return attend(ones(3, 3, 8), ones(2, 6, 8), ones(2, 6, 8)) end)
    refuses("ESHAPE", "bias", function() return F.linear(ones(2, 4), ones(3, 4), ones(2)) end)
    refuses("ESHAPE", "bias", function() return F.linear(ones(2, 4), ones(3, 4), ones(1, 2, 3)) end)
    refuses("ESHAPE", "key", function() return attend(ones(3, 8), ones(1, 8), ones(6, 8)) end)
  end)

  it("of losses refuses what PyTorch refuses, and what is nearly always a mistake", function()
    local x, ones = ampl.ones(4, 3), ampl.ones
    for _, var in ipairs {ones(3), ones(1), ones(1, 1), ones(2, 4, 3), ampl.tensor(1.)} do
      refuses("ESHAPE", "var", function() return F.gaussian_nll_loss(x, x, var) end)
    end
    refuses("ESHAPE", "var", function() return F.gaussian_nll_loss(ones(1, 3), x, ones(4, 3)) end)
    assert.equal(0, F.gaussian_nll_loss(x, x, 1):item())
    refuses("ESHAPE", "positive", function() return F.triplet_margin_loss(x, ones(3), x) end)
    refuses("ESHAPE", "broadcast", function() return F.triplet_margin_loss(x, ones(2, 3), x) end)
    refuses("ESHAPE", "x2", function() return F.margin_ranking_loss(x, ones(3), x) end)
    refuses("ESHAPE", "target", function() return F.margin_ranking_loss(x, x, ampl.tensor(1.)) end)
    refuses("ESHAPE", "target", function() return F.cosine_embedding_loss(x, x, ampl.tensor(1.)) end)
    refuses("ESHAPE", "target", function() return F.cosine_embedding_loss(x, ones(3), ones(4)) end)
    for _, name in ipairs {"mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "hinge_embedding_loss",
                           "soft_margin_loss", "poisson_nll_loss", "kl_div"} do
      refuses("ESHAPE", "reshape", function() return F[name](ones(4), ones(4, 1)) end)
    end
    refuses("ESHAPE", "target", function() return F.mse_loss(x, ones(1, 3)) end)
  end)

  it("of roll adds up the turns of a dimension that is named twice", function()
    assert.same({2, 3, 0, 1}, ampl.arange(4):roll({1, 1}, {1, 1}):totable())
    local rows = ampl.arange(6):reshape(2, 3)
    assert.same({{0, 1, 2}, {3, 4, 5}}, rows:roll({1, 2, -1}, {2, 1, 2}):totable())
    local turned = rows:roll({1, 1, 1, 2}, {2, 1, 2, 2}):roll(-3, 2):roll({-4, 1}, {2, 2})
    assert.same({{5, 3, 4}, {2, 0, 1}}, turned:totable())
    local x = ampl.ones(2, 3):requires_grad_(true)
    x:roll({1, 1, 1}, {2, 2, 2}):sum():backward()
    assert.equal(6, x.grad:sum():item())
    refuses("EARG", "shifts", function() return ampl.ones(2):roll({}, {}) end)
    refuses("EINDEX", "twice", function() return ampl.ones(2, 2):flip {1, 1} end)
  end)
end)

describe("a tensor of rank 0", function()
  -- op, arguments, the shape of the (first) result, its values: those of PyTorch
  local function t(v) return ampl.tensor(v, {dtype = "i64"}) end
  local s = ampl.tensor(2.)
  local list = {
    {"softmax", {1}, "", 1}, {"log_softmax", {-1}, "", 0}, {"cumsum", {1}, "", 2}, {"cumprod", {-1}, "", 2},
    {"sort", {}, "", 2}, {"argsort", {}, "", 1}, {"topk", {1}, "", 2}, {"topk", {0}, "", 2}, {"argmax", {1}, "", 1},
    {"argmax", {}, "", 1}, {"max", {1}, "", 2}, {"median", {1}, "", 2}, {"flip", {1}, "", 2}, {"gather",
    {1, t(1)}, "", 2},
    {"gather", {1, t {1, 1}}, "2", 2}, {"index_select", {1, t {1}}, "", 2}, {"index_select", {1, t(1)}, "", 2},
    {"index_add", {1, t {1}, ampl.tensor(1.)}, "", 3}, {"scatter", {1, t(1), ampl.tensor(5.)}, "", 5},
    {"scatter_add", {1, t(1), ampl.tensor(5.)}, "", 7}, {"roll", {1}, "", 2}, {"unfold", {1, 1, 1}, "1", 2},
    {"flatten", {}, "1", 2}, {"squeeze", {1}, "", 2}, {"transpose", {1, -1}, "", 2}, {"permute", {{}}, "", 2},
    {"movedim", {1, 1}, "", 2}, {"tile", {2}, "2", 2}, {"repeat_interleave", {3}, "3", 2}, {"sum", {1}, "", 2},
    {"mean", {-1}, "", 2}, {"prod", {1}, "", 2}, {"norm", {2, 1}, "", 2}, {"logsumexp", {1}, "", 2}, {"amax",
    {1}, "", 2},
    {"std", {1, {correction = 0}}, "", 0}, {"count_nonzero", {1}, "", 1}, {"unique", {}, "1", 2},
    {"masked_select", {ampl.tensor(true)}, "1", 2}, {"masked_select", {ampl.tensor {true, false}}, "1", 2},
    {"take_along_dim", {t(1)}, "1", 2}, {"normalize", {2, 1}, "", 1}, {"t", {}, "", 2}, {"dropout", {0}, "", 2},
    {"prelu", {ampl.tensor {0.1}}, "", 2}, {"pad", {{}}, "", 2},
  }
  for i, c in ipairs(list) do
    it("is taken by " .. c[1] .. " (" .. i .. ")", function()
      local f = s[c[1]] or F[c[1]]
      local y = f(s, table.unpack(c[2]))
      assert.equal(c[3], table.concat(y.shape, ","))
      for _, v in ipairs(y:flatten():totable()) do assert.equal(c[4], v) end
    end)
  end
end)
