-- ampl.nn.init: first values of parameters, in place, as PyTorch has them.

local core = require "ampl.core"
local args = require "ampl.args"
local raise = require "ampl.raise"

local init = {}

local function how(t)
  return {dtype = t.dtype, device = t.device}
end

-- Writes `values` into t, whatever grad mode says.
local function fill(t, values)
  t:detach():copy_(values)
  return t
end

local gains = {
  linear = 1, conv1d = 1, conv2d = 1, conv3d = 1, conv_transpose1d = 1, conv_transpose2d = 1, conv_transpose3d = 1,
  sigmoid = 1, tanh = 5 / 3, relu = math.sqrt(2), selu = 3 / 4,
}

local nonlinearities = {"leaky_relu"}
for name in pairs(gains) do nonlinearities[#nonlinearities + 1] = name end
table.sort(nonlinearities)

---The factor that keeps variance through a nonlinearity.
---@param nonlinearity string
---@param param? number the slope of leaky_relu, 0.01 when not given
---@return number
init.calculate_gain = args.declare("calculate_gain", {
  {"nonlinearity", "string", choices = nonlinearities}, {"param", "number?"},
}, function(o)
  if o.nonlinearity == "leaky_relu" then return math.sqrt(2 / (1 + (o.param or 0.01) ^ 2)) end
  return gains[o.nonlinearity]
end)

-- fan_in and fan_out: the second and first size times the kernel's.
local function fans(op, t)
  local shape = t.shape
  if #shape < 2 then
    raise("ESHAPE", op, ("fan_in and fan_out need at least 2 dimensions, the tensor is {%s}"):format(
      table.concat(shape, ", ")))
  end
  local field = 1
  for i = 3, #shape do field = field * shape[i] end
  return shape[2] * field, shape[1] * field
end

---@param t ampl.Tensor
---@return integer fan_in
---@return integer fan_out
init.calculate_fan_in_and_fan_out = args.declare("calculate_fan_in_and_fan_out", {{"tensor", "tensor"}}, function(o)
  return fans("calculate_fan_in_and_fan_out", o.tensor)
end)
init._calculate_fan_in_and_fan_out = init.calculate_fan_in_and_fan_out

-- Every function is init.NAME(tensor, ...): `params` are the arguments after the tensor.
local function define(name, params, body)
  init[name] = args.declare(name, {{"tensor", "tensor"}, table.unpack(params)}, function(o)
    return body(o.tensor, o, name)
  end)
end

local function uniform(t, a, b)
  return fill(t, core.rand(t.shape, how(t)):mul_(b - a):add_(a))
end

local function normal(t, mean, std)
  return fill(t, core.randn(t.shape, how(t)):mul_(std):add_(mean))
end

---Draws from a to b, all alike.
define("uniform_", {{"a", "number", 0.0}, {"b", "number", 1.0}}, function(t, o) return uniform(t, o.a, o.b) end)
---Draws from a normal distribution.
define("normal_", {{"mean", "number", 0.0}, {"std", "number", 1.0, min = 0}}, function(t, o)
  return normal(t, o.mean, o.std)
end)
---Writes one number.
define("constant_", {{"val", "number"}}, function(t, o)
  t:detach():fill_(o.val)
  return t
end)
---Writes 1.
define("ones_", {}, function(t) return init.constant_(t, 1) end)
---Writes 0.
define("zeros_", {}, function(t) return init.constant_(t, 0) end)

---Writes the identity matrix.
define("eye_", {}, function(t, _, name)
  if #t.shape ~= 2 then raise("ESHAPE", name, ("a matrix is needed, not %d dimensions"):format(#t.shape)) end
  return fill(t, core.eye(t.shape[1], t.shape[2], how(t)))
end)

---Writes 1 at the middle of the kernel where input and output channel agree: a convolution that changes nothing.
define("dirac_", {{"groups", "integer", 1, min = 1}}, function(t, o, name)
  local shape = t.shape
  if #shape < 3 or #shape > 5 then raise("ESHAPE", name, ("3 to 5 dimensions are needed, not %d"):format(#shape)) end
  if shape[1] % o.groups ~= 0 then
    raise("EVALUE", name, ("%d channels cannot be cut into %d groups"):format(shape[1], o.groups))
  end
  local plain, each = t:detach(), shape[1] // o.groups
  plain:zero_()
  for g = 0, o.groups - 1 do
    for d = 1, math.min(each, shape[2]) do
      local at = {g * each + d, d}
      for i = 3, #shape do at[i] = shape[i] // 2 + 1 end
      plain[at] = 1
    end
  end
  return t
end)

---Glorot and Bengio's (2010), uniform within gain * sqrt(6 / (fan_in + fan_out)).
define("xavier_uniform_", {{"gain", "number", 1.0}}, function(t, o, name)
  local fan_in, fan_out = fans(name, t)
  local bound = o.gain * math.sqrt(6 / (fan_in + fan_out))
  return uniform(t, -bound, bound)
end)

---Glorot and Bengio's (2010), normal with deviation gain * sqrt(2 / (fan_in + fan_out)).
define("xavier_normal_", {{"gain", "number", 1.0}}, function(t, o, name)
  local fan_in, fan_out = fans(name, t)
  return normal(t, 0, o.gain * math.sqrt(2 / (fan_in + fan_out)))
end)

local kaiming = {
  {"a", "number", 0.0}, {"mode", "string", "fan_in", choices = {"fan_in", "fan_out"}},
  {"nonlinearity", "string", "leaky_relu", choices = nonlinearities},
}

local function kaiming_std(t, o, name)
  local fan_in, fan_out = fans(name, t)
  return init.calculate_gain(o.nonlinearity, o.a) / math.sqrt(o.mode == "fan_in" and fan_in or fan_out)
end

---He's (2015), uniform within gain * sqrt(3 / fan); a: the slope of leaky_relu.
define("kaiming_uniform_", kaiming, function(t, o, name)
  local bound = math.sqrt(3) * kaiming_std(t, o, name)
  return uniform(t, -bound, bound)
end)

---He's (2015), normal with deviation gain / sqrt(fan); a: the slope of leaky_relu.
define("kaiming_normal_", kaiming, function(t, o, name) return normal(t, 0, kaiming_std(t, o, name)) end)

-- By the inverse of the distribution function, in f64: its ends are far from the open interval's.
---Draws from a normal distribution, cut off at a and b.
define("trunc_normal_", {
    {"mean", "number", 0.0}, {"std", "number", 1.0, above = 0}, {"a", "number", -2.0}, {"b", "number", 2.0},
  }, function(t, o, name)
    if o.a >= o.b or o.a ~= o.a or o.b ~= o.b then
      raise("EVALUE", name, ("b must be above a, but they are %g and %g"):format(o.b, o.a))
    end
    local ends = core.tensor({(o.a - o.mean) / o.std, (o.b - o.mean) / o.std}, {dtype = "f64"})
    local e = ends:mul_(math.sqrt(0.5)):erf():totable()
    local x = core.rand(t.shape, {dtype = "f64", device = t.device}):mul_(e[2] - e[1]):add_(e[1])
    return fill(t, x:erfinv():mul_(o.std * math.sqrt(2)):add_(o.mean):clamp({min = o.a, max = o.b}))
  end)

-- Gram and Schmidt, each row twice, in f64.
local function orthonormal_rows(a)
  local q = a:clone()
  for i = 1, a.shape[1] do
    local row = q[i]
    if i > 1 then
      local done = q:narrow(1, 1, i - 1)
      for _ = 1, 2 do row:sub_(done:t():mv(done:mv(row))) end
    end
    row:div_(row:norm())
  end
  return q
end

---Writes an orthogonal matrix (Saxe et al. 2014), times gain; more dimensions count as columns.
define("orthogonal_", {{"gain", "number", 1.0}}, function(t, o, name)
  if #t.shape < 2 then raise("ESHAPE", name, "at least 2 dimensions are needed") end
  local rows = t.shape[1]
  if t:numel() == 0 then return t end
  local columns = t:numel() // rows
  local a = core.randn({math.min(rows, columns), math.max(rows, columns)}, {dtype = "f64", device = t.device})
  local q = orthonormal_rows(a):mul_(o.gain)
  if rows > columns then q = q:t() end
  return fill(t, q:reshape(t.shape))
end)

---Draws from a normal distribution, and writes 0 to this share of each column.
define("sparse_", {{"sparsity", "number", min = 0, max = 1}, {"std", "number", 0.01, min = 0}}, function(t, o, name)
  if #t.shape ~= 2 then raise("ESHAPE", name, ("a matrix is needed, not %d dimensions"):format(#t.shape)) end
  normal(t, 0, o.std)
  local zeros = math.ceil(o.sparsity * t.shape[1])
  local rank = core.rand(t.shape, {device = t.device}):argsort(1):argsort(1)    -- a random order of each column
  return fill(t, t:detach():masked_fill(rank:le(zeros), 0))
end)

---PyTorch's default for linear and convolution layers: weight and bias uniform within 1 / sqrt(fan_in).
---@param weight ampl.Tensor
---@param bias? ampl.Tensor
init.by_fan_in = args.declare("by_fan_in", {{"weight", "tensor"}, {"bias", "tensor?"}}, function(o)
  local weight, bias = o.weight, o.bias
  local fan_in = fans("by_fan_in", weight)
  local bound = fan_in > 0 and 1 / math.sqrt(fan_in) or 0
  uniform(weight, -bound, bound)
  if bias then uniform(bias, -bound, bound) end
end)

return init
