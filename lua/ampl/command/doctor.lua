-- `ampl doctor`: what ampl finds on this machine, and whether it computes rightly here.

local ampl = require "ampl"

local function line(name, value)
  print(("%-14s %s"):format(name, tostring(value)))
end

-- A product in every dtype against f64: true, or what is wrong.
local function computes()
  ampl.manual_seed(1)
  local a, b = ampl.randn(65, 130), ampl.randn(130, 70)
  local exact = a:to("f64"):matmul(b:to("f64"))
  for dtype, tolerance in pairs {f32 = 1e-5, f16 = 1e-2, bf16 = 1e-1} do
    local got = a:to(dtype):matmul(b:to(dtype)):to("f64")
    local off = ((got - exact):abs():amax() / exact:abs():amax()):item()
    if off ~= off or off >= tolerance then
      return ("a product in %s is off by %.2g of the largest"):format(dtype, off)
    end
  end
  local x = ampl.tensor({0.5, -1.0}, {requires_grad = true})
  local y = (x:sin() * x):sum()
  y:backward()
  if math.abs(x.grad[1]:item() - (math.sin(0.5) + 0.5 * math.cos(0.5))) > 1e-6 then return "a gradient is wrong" end
  return true
end

return function()
  local memory = ampl.memory()
  line("ampl", ampl._VERSION)
  line("lua", _VERSION)
  line("instructions", ampl.backends.cpu.isa)
  line("threads", ampl.get_num_threads())
  line("memory limit", ("%.1f GB"):format(ampl.memory_limit() / 1e9))
  line("in use", ("%.1f MB"):format(memory.live / 1e6))
  for _, device in ipairs(ampl.devices()) do line("device", type(device) == "table" and device.name or device) end
  for _, name in ipairs {"AMPL_CPU", "AMPL_ALLOC", "AMPL_MEMORY_LIMIT", "AMPL_BACKEND_PATH", "AMPL_INIT",
                         "OMP_NUM_THREADS", "LUA_PATH", "LUA_CPATH"} do
    if os.getenv(name) then line(name, os.getenv(name)) end
  end
  local verdict = computes()
  line("arithmetic", verdict == true and "right" or verdict)
  if verdict ~= true then error("ampl does not compute rightly on this machine", 0) end
end
