-- Finalisers: of ours called by hand, twice and on wrong objects; of users' that free what a running call reads.

local ampl = require "ampl"
local amp = ampl.amp

local heavy = os.getenv("AMPL_SPEC_SANITIZE") and 1 or 2

-- Runs fn at the next collection.
local function at_collection(fn)
  setmetatable({}, {__gc = function() fn() end})
end

local function collect() collectgarbage(); collectgarbage() end

describe("a finaliser called by hand", function()
  it("ends a mode, once", function()
    for _, enter in ipairs{ampl.no_grad, ampl.inference_mode, amp.autocast} do
      local m = enter()
      for _ = 1, 3 do pcall(function() m:__gc() end) end
      assert.is_true(ampl.is_grad_enabled())
      assert.is_false(amp.is_autocast_enabled())
      m:close()
    end
  end)

  it("does no harm to any of our objects, right or wrong", function()
    local x = ampl.ones(2, {requires_grad = true})
    local scaler = amp.GradScaler()
    local objects = {x, ampl.no_grad(), ampl.scope(), x:register_hook(function() end), scaler.handle,
                     amp.autocast{dtype = "bf16"}}
    for _, object in ipairs(objects) do
      local mt = debug.getmetatable(object)
      for _, event in ipairs{"__gc", "__close", "__len", "__eq", "__tostring", "__index", "__newindex", "__add",
                             "__pairs"} do
        local f = mt[event]
        if type(f) == "function" then
          for _, wrong in ipairs{5, "x", {}, io.stdout, print, coroutine.create(print)} do
            pcall(f, wrong)
            pcall(f, wrong, "shape", 1)
            pcall(f, wrong, 1)
          end
          pcall(f)
        end
      end
    end
    for i = 2, #objects do
      local gc = debug.getmetatable(objects[i]).__gc
      if gc then for _ = 1, 3 do gc(objects[i]) end end
    end
    local gc = debug.getmetatable(x).__gc
    gc(x); gc(x)
    assert.equal("tensor (freed)", tostring(x))
    local ok, e = pcall(scaler.get_scale, scaler)
    assert.is_false(ok)
    assert.equal("EFREED", e.code)
    collect()
    assert.is_true(ampl.is_grad_enabled())
    assert.equal(2, ampl.ones(2):sum():item())
  end)
end)

describe("a finaliser that frees what a call reads", function()
  -- Collections happen in the middle of calls when memory is short.
  local function short_of_memory(fn)
    local limit = ampl.memory_limit()
    ampl.memory_limit(ampl.memory().live + (24 << 20))
    collectgarbage("stop")
    local junk = {}
    for i = 1, 5 do junk[i] = ampl.zeros(1 << 20) end
    local ok, e = pcall(fn, function() for i = 1, #junk do junk[i] = nil end end)
    collectgarbage("restart")
    ampl.memory_limit(limit)
    if not ok then error(e, 0) end
  end

  it("does not take operands, lists and options away", function()
    local n = 1 << 20
    local forms = {
      function(x) return x + x end,
      function(x) return x:exp() end,
      function(x) return ampl.cat{x, x[{{1, 1000}}]} end,
      function(x) return x:clamp({min = ampl.zeros(1), max = x}) end,
      function(x) return x:mul_(x:add(1)) end,
    }
    for _, form in ipairs(forms) do
      local x, ran = ampl.ones(n), false
      short_of_memory(function(let_go)
        at_collection(function() ran = true; x:free() end)
        let_go()
        local ok, y = pcall(form, x)
        if ok then assert.is_true(y:isfinite():all():item()) else assert.equal("EFREED", y.code) end
      end)
      collect()
      assert.is_true(ran)
    end
  end)

  it("does not take a list's tensors with the list", function()
    local list = {ampl.ones(1 << 20), ampl.ones(1 << 20)}
    short_of_memory(function(let_go)
      at_collection(function() list[1], list[2] = nil, nil; collectgarbage() end)
      let_go()
      local y = ampl.cat(list)
      assert.equal(1 << 21, y:sum():item())
    end)
    collect()
  end)

  it("does not take the scope of a running call", function()
    local s = ampl.scope()
    local x = ampl.ones(1 << 21)
    short_of_memory(function(let_go)
      at_collection(function() s:close() end)
      let_go()
      local ok, y = pcall(function() return (x + 1):sum():item() end)
      assert(ok and y == 2 << 21 or not ok and y.code == "EFREED", tostring(y))
      s:close()
    end)
    collect()
  end)
end)

describe("a finaliser of an object that was there before", function()
  it("may use tensors, modes, scopes, hooks and scalers that are finalised already", function()
    local ran = 0
    for _ = 1, 20 do
      local before = setmetatable({}, {__gc = function(o)
        ran = ran + 1
        for name, use in pairs{
          x = function(x) x:free(); return x:keep() end, y = function(y) return y + 1 end,
          mode = function(m) m:close() end, scope = function(s) s:export(o.x); s:close() end,
          hook = function(h) h:remove() end, scaler = function(s) return s:scale(ampl.ones(1)) end,
        } do
          local ok, e = pcall(use, o[name])
          assert(ok or e.code == "EFREED", tostring(e))
        end
      end})
      local w = ampl.ones(1, {requires_grad = true})
      before.x, before.y, before.scaler = ampl.ones(3), ampl.ones(3), amp.GradScaler()
      before.mode, before.scope = ampl.enable_grad(), ampl.scope()
      before.hook = w:register_hook(function() end)
      before.scope:close()
      before.mode:close()
    end
    for _ = 1, 4 do
      collectgarbage()
      for _ = 1, 50 do ampl.ones(2):add(1) end
    end
    assert.equal(20, ran)
    assert.is_true(ampl.is_grad_enabled())
  end)
end)

describe("a finaliser that computes", function()
  it("while calls run, and their results are right", function()
    local runs = 0
    local function again()
      setmetatable({}, {__gc = function()
        runs = runs + 1
        local x = ampl.arange(5):float()
        assert(x:add(1):sum():item() == 15 and not pcall(function() return x[9] end))
        ampl.scope(function() ampl.no_grad(function() return x:exp() end) end)
        if runs < 40 * heavy then again() end
      end})
    end
    again()
    for i = 1, 200 * heavy do
      local x = ampl.full({3}, i + 0., {requires_grad = true})
      local y = (x * x):sum()
      y:backward()
      assert.same({2. * i, 2. * i, 2. * i}, x.grad:totable())
      if i % 10 == 0 then collectgarbage() end
    end
    assert(runs > 5, runs)
    runs = 1 << 30
    collect()
  end)
end)

describe("a mode or scope that nobody closes", function()
  it("ends when it is collected, with a warning", function()
    for _, enter in ipairs{ampl.no_grad, ampl.inference_mode, amp.autocast, ampl.scope} do
      local heard = {}
      ampl.on_warning(function(w) heard[#heard + 1] = w.message end)
      pcall(function() enter() end)
      collect()
      ampl.on_warning(nil)
      assert.equal(1, #heard)
      assert(heard[1]:find("never closed", 1, true), heard[1])
      assert.is_true(ampl.is_grad_enabled())
      assert.is_false(amp.is_autocast_enabled())
    end
  end)
end)
