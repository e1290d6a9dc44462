-- What the convolution layers share: arguments, parameters and their first values.

local core = require "ampl.core"
local F = require "ampl.nn.functional"
local Module = require "ampl.nn.Module"
local init = require "ampl.nn.initializers"
local raise = require "ampl.raise"

-- One number stands for all dimensions.
local function spread(v, n)
  if type(v) == "table" then return v end
  local out = {}
  for i = 1, n do out[i] = v end
  return out
end

local function check(name, o)
  if o.in_channels % o.groups ~= 0 or o.out_channels % o.groups ~= 0 then
    raise("EVALUE", name, ("in_channels %d and out_channels %d must be divisible by groups %d"):format(
      o.in_channels, o.out_channels, o.groups))
  end
end

local convolution = {}

-- Makes the class of a layer over `n` dimensions; `transposed` turns the weight around and adds output_padding.
local function define(name, n, transposed, forward)
  local params = {
    {"in_channels", "integer", min = 0}, {"out_channels", "integer", min = 0},
    {"kernel_size", "size", min = 1, length = n}, {"stride", "size", 1, min = 1, length = n},
    {"padding", transposed and "size" or "padding", 0, min = 0, length = n},
  }
  local function add(param) params[#params + 1] = param end
  local dilation = {"dilation", "size", 1, min = 1, length = n}
  add(transposed and {"output_padding", "size", 0, min = 0, length = n} or dilation)
  add {"groups", "integer", 1, min = 1}
  add {"bias", "boolean", true}
  if transposed then add(dilation) end
  add {"padding_mode", "string", "zeros", choices = {"zeros"}}
  add {"device", "device?"}
  add {"dtype", "dtype?"}
  local class = Module:define(name, params)

  function class:init(...)
    local o = self:options(...)
    check(name, o)
    self.in_channels, self.out_channels, self.groups = o.in_channels, o.out_channels, o.groups
    self.stride, self.padding, self.output_padding, self.dilation = o.stride, o.padding, o.output_padding, o.dilation
    self.kernel_size = spread(o.kernel_size, n)
    local first, second = o.out_channels, o.in_channels // o.groups
    if transposed then first, second = o.in_channels, o.out_channels // o.groups end
    local how = {dtype = o.dtype, device = o.device, requires_grad = true}
    self.weight = core.empty({first, second, table.unpack(self.kernel_size)}, how)
    if o.bias then self.bias = core.empty({o.out_channels}, how) end
    self:reset_parameters()
  end

  ---Draws the parameters anew, as PyTorch does.
  function class:reset_parameters()
    init.by_fan_in(self.weight, self.bias)
  end

  class.forward = forward
  return class
end

---A layer on the op `op` over n dimensions.
---@param name string
---@param op string
---@param n integer
function convolution.plain(name, op, n)
  local call = F[op]
  return define(name, n, false, function(self, x)
    return call(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
  end)
end

---A transposed convolution.
---@param name string
---@param op string
---@param n integer
function convolution.transposed(name, op, n)
  local call = F[op]
  return define(name, n, true, function(self, x)
    return call(x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)
  end)
end

return convolution
