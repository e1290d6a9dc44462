-- Memory that Lua's collector cannot see: loops stay bounded under both collectors, graphs free themselves, scopes and
-- free() give memory back at once, and nothing is left at the end.

local ampl = require "ampl"
local shell = require "spec.support.shell"

local MB = 1 << 20

local function live()
  collectgarbage()
  collectgarbage()
  return ampl.memory().live
end

-- Runs a script in a process of its own under a limit; the largest resident set in MB.
local function peak(text, limit, mode)
  local script = shell.file(([[
    collectgarbage(%q)
    local ampl = require "ampl"
    %s
    for line in io.lines("/proc/self/status") do
      local kb = line:match("^VmHWM:%%s*(%%d+)")
      if kb then print("peak " .. kb // 1024) end
    end]]):format(mode, text), ".lua")
  local out, err, code = shell.run(("AMPL_MEMORY_LIMIT=%d %s %s"):format(limit, shell.program(), script))
  assert(code == 0, err)
  return tonumber(out:match("peak (%d+)"))
end

describe("memory", function()
  teardown(function() shell.clean() end)
  local rss = os.getenv("AMPL_SPEC_SANITIZE") and 100000 or 700       -- MB; a sanitizer keeps freed memory

  local rounds = os.getenv("AMPL_SPEC_SANITIZE") and 200 or 5000      -- and is slow

  for _, mode in ipairs {"incremental", "generational"} do
    it("stays bounded in a loop that drops tensors, " .. mode, function()
      assert(peak("for i = 1, " .. rounds .. " do local a = ampl.zeros(1e6) end", 512 * MB, mode) < rss)
    end)

    it("stays bounded in a loop that keeps them in a table for a step, " .. mode, function()
      local text = [[
        local survivor = {}
        for step = 1, 60 do
          local list = {}
          for i = 1, 50 do list[i] = ampl.zeros(250000) end
          survivor[step % 5] = list[1]
        end]]
      assert(peak(text, 512 * MB, mode) < rss)
    end)

    it("stays bounded in a training loop, " .. mode, function()
      local text = [[
        local w = ampl.randn(512, 512, {requires_grad = true})
        local x = ampl.randn(512, 512)
        for step = 1, 100 do
          local y = x
          for layer = 1, 6 do y = (y * w):relu() end
          y:sum():backward()
          ampl.no_grad(function() w:sub_(w.grad * 1e-6) end)
          w.grad = nil
        end]]
      assert(peak(text, 256 * MB, mode) < rss)
    end)
  end

  it("says what takes it when there is too little", function()
    local before = ampl.memory_limit()
    ampl.memory_limit(64 * MB)
    local held = ampl.zeros(8 * MB // 4)
    local ok, e = pcall(function() return ampl.zeros(100 * MB // 4) end)
    ampl.memory_limit(before)
    assert.is_false(ok)
    assert.equal("ENOMEM", e.code)
    assert(e.message:find("tensors", 1, true), e.message)
    assert.equal(8 * MB // 4, #held)
    assert.equal(25 * MB, #ampl.zeros(25 * MB))
  end)

  it("is given back by free, by scopes and by backward", function()
    local start = live()
    local x = ampl.zeros(MB)
    assert(ampl.memory().live >= start + 4 * MB)
    x:free()
    assert.equal(start, ampl.memory().live)

    ampl.scope(function()
      for _ = 1, 10 do x = ampl.zeros(MB) end      -- luacheck: ignore 311
    end)
    assert.equal(start, ampl.memory().live)

    local w = ampl.ones(MB // 4, {requires_grad = true})
    local base = live()
    local loss = ((w * 2):exp() * w):sum()
    assert(ampl.memory().nodes > 0)
    loss:backward()
    w.grad = nil
    loss = nil          -- luacheck: ignore 311
    assert.equal(base, live())
    assert.equal(0, ampl.memory().nodes)
  end)

  it("is not held by views that are gone, and held by those that are not", function()
    local start = live()
    local x = ampl.zeros(MB)
    local row = x:narrow(1, 1, 10)
    x:free()
    assert(live() >= start + 4 * MB)
    assert.equal(10, #row)
    row:free()
    assert.equal(start, live())
  end)

  it("returns to where it was", function()
    local function work()
      local a = ampl.randn(20, 20, {requires_grad = true})
      local b = (a:transpose(1, 2) + 1):softmax(1):matmul(a)
      b:sum():backward()
      return a.grad:sum():item()
    end
    work()
    local before = live()
    for _ = 1, 5 do work() end
    assert.equal(before, live())
  end)

  it("is freed though a graph is very long", function()
    local start = live()
    local x = ampl.ones(1, {requires_grad = true})
    local y = x
    for _ = 1, 100000 do y = y + 1 end
    y:sum():backward()
    assert.equal(1, x.grad:item())
    y = x               -- luacheck: ignore 311
    for _ = 1, 100000 do y = y * 1 end
    x, y = nil, nil     -- luacheck: ignore 311
    assert.equal(start, live())
  end)
end)
