-- Backends are plug-ins: the null backend has shapes, dtypes and memory figures, and no numbers.
local ampl = require "ampl"
local reason = require "spec.support.pending"
local F = ampl.nn.functional

local there = ampl.is_available("null")

describe("the null backend", function()
  it("is found next to the library", function()
    if not there then pending(reason("no_null")) return end
    local names = ampl.devices()
    assert.are.equal("cpu", names[1])
    local found = false
    for _, name in ipairs(names) do found = found or name == "null" end
    assert.is_true(found)
  end)

  it("walks a training step in mixed precision, by shapes alone", function()
    if not there then pending(reason("no_null")) return end
    local w = ampl.zeros(1000, 2000, {device = "null", requires_grad = true})
    local x = ampl.zeros(64, 2000, {device = "null"})
    local y = ampl.amp.autocast({dtype = "bf16"}, function() return F.linear(x, w):relu() end)
    assert.are.same({64, 1000}, y.shape)
    assert.are.equal("bf16", y.dtype)
    assert.are.equal("null", y.device)
    y:sum():backward()
    assert.are.same({1000, 2000}, w.grad.shape)
    assert.are.equal("f32", w.grad.dtype)
    assert.are.equal(0.0, y:float():sum():item())
  end)

  it("refuses what depends on data, and operands of two devices", function()
    if not there then pending(reason("no_null")) return end
    local x = ampl.zeros(3, {device = "null"})
    local ok, e = pcall(x.nonzero, x)
    assert.is_false(ok)
    assert.are.equal("EUNSUPPORTED", e.code)
    ok, e = pcall(function() return x + ampl.zeros(3) end)
    assert.is_false(ok)
    assert.are.equal("EDEVICE", e.code)
    assert.is_truthy(e.message:find("null") and e.message:find("cpu"))
  end)

  it("names the devices there are when one is missing", function()
    local ok, e = pcall(ampl.zeros, 2, {device = "nowhere"})
    assert.is_false(ok)
    assert.are.equal("EDEVICE", e.code)
    assert.is_truthy(e.message:find("nowhere") and e.message:find("cpu"))
  end)
end)
