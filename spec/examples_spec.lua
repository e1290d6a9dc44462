-- The examples run, with small settings, and do what they say.

local shell = require "spec.support.shell"
local folders = require "spec.support.folders"

local examples = folders.project .. "examples/"

-- The lines that an example prints.
local function run(arguments)
  local out, err, code = shell.run(("%s %s%s"):format(shell.quote(shell.program()), examples, arguments))
  assert.equal("", err)
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch("[^\n]+") do lines[#lines + 1] = line end
  return lines
end

-- The numbers behind `name` in all lines.
local function numbers(lines, name)
  local out = {}
  for _, line in ipairs(lines) do out[#out + 1] = tonumber(line:match(name .. " +(-?%d[%d.e+-]*)")) end
  return out
end

describe("the example", function()
  teardown(shell.clean)

  it("01_line finds the line", function()
    local lines = run("01_line.lua --steps 100")
    local losses = numbers(lines, "loss")
    assert.equal(100, #losses)
    assert.is_true(losses[100] < 0.02)
    local slope, offset = lines[#lines]:match("^y = (%S+) x %+ (%S+)$")
    assert.is_true(math.abs(slope - 3) < 0.1 and math.abs(offset - 0.5) < 0.1)
  end)

  for _, dtype in ipairs {"f32", "bf16", "f16"} do
    it("02_digits learns in " .. dtype, function()
      local lines = run("02_digits.lua --epochs 3 --dtype " .. dtype)
      assert.equal(3, #numbers(lines, "loss"))
      assert.is_true(numbers(lines, "accuracy")[1] > 93)
    end)
  end

  it("03_precisions compares", function()
    local lines = run("03_precisions.lua --epochs 1")
    assert.equal(4, #lines)
    for i, dtype in ipairs {"f32", "bf16", "f16"} do
      assert.is_true(tonumber(lines[i + 1]:match("^" .. dtype .. " +([%d.]+) %%")) > 50)
    end
    assert.truthy(lines[4]:find("[%d.]+ %%$"))
  end)

  it("04_accumulate steps once for each effective batch", function()
    local lines = run("04_accumulate.lua --steps 40")
    local losses = numbers(lines, "loss")
    assert.equal(40, #losses)
    assert.is_true(losses[40] < losses[1] / 2)
    assert.is_true(numbers(lines, "accuracy")[1] > 80)
  end)

  for _, dtype in ipairs {"f32", "f16"} do
    it("05_gpt learns and writes in " .. dtype, function()
      local lines = run("05_gpt.lua --layers 1 --d 32 --heads 2 --context 32 --batch 8 --steps 100 --lr 1e-2 " ..
                        "--sample 60 --dtype " .. dtype)
      local losses = numbers(lines, "loss")
      assert.is_true(losses[1] > 5 and losses[#losses] < 4)
      assert.is_true(numbers(lines, "held out")[1] < 3.5)
    end)
  end

  it("06_custom_function trains through rounding", function()
    local lines = run("06_custom_function.lua --steps 60")
    assert.equal("gradient 0.0 1.0 1.0 0.0", lines[1])
    local losses = numbers(lines, "loss")
    assert.is_true(losses[60] < losses[1] / 3)
  end)
end)
