-- A function with a backward of its own: here a rounding that lets gradients through, used to train weights that
-- only have 4 bits.
--
--   ampl examples/06_custom_function.lua [--steps 60]

local ampl = require "ampl"
local nn, F, optim = ampl.nn, ampl.nn.functional, ampl.optim

local o = {steps = 60}
for i = 1, #arg, 2 do
  local name = arg[i]:match("^%-%-(%w+)$")
  assert(o[name], "unknown option " .. arg[i])
  o[name] = tonumber(arg[i + 1])
end

-- forward: x on a grid of 15 values within -limit..limit.  backward: 1 inside the limits, 0 outside.
local quantise = ampl.Function{
  forward = function(ctx, x, limit)
    ctx.limit = limit
    ctx:save(x)
    return (x:clamp({min = -limit, max = limit}) * (7 / limit)):round() * (limit / 7)
  end,
  backward = function(ctx, dy)
    local x = ctx:saved()
    return dy * x:abs():le(ctx.limit)
  end,
}

local QuantLinear = nn.Linear:extend("QuantLinear")

function QuantLinear:forward(x)
  return F.linear(x, quantise(self.weight, 1.0), self.bias)
end

-- Where the slope is defined, backward agrees with it: inside the limits of the clamp, on the identity.
local probe = ampl.tensor({-2.0, -0.5, 0.3, 2.0}, {requires_grad = true})
quantise(probe, 1.0):sum():backward()
print("gradient " .. table.concat(probe.grad:totable(), " "))

ampl.manual_seed(1)
local x = ampl.randn(256, 8)
local y = x:matmul(ampl.randn(8, 1)):tanh()
local model = nn.Sequential(QuantLinear(8, 16), nn.Tanh(), nn.Linear(16, 1))
local opt = optim.Adam(model, {lr = 0.02})

for step = 1, o.steps do
  local loss = F.mse_loss(model(x), y)
  opt:zero_grad()
  loss:backward()
  opt:step()
  print(("step %d  loss %.5f"):format(step, loss:item()))
end

local values, seen = {}, {}
for _, row in ipairs((quantise(model[1].weight, 1.0) * 7):round():totable()) do
  for _, v in ipairs(row) do
    if not seen[v] then
      seen[v] = true
      values[#values + 1] = math.tointeger(v)
    end
  end
end
table.sort(values)
print("weights, in sevenths: " .. table.concat(values, " "))
