-- Runs generated lines of Lua and watches what they do.
--
-- A part (ops.lua, callbacks.lua, ...) returns function(r) -> line [, expectation], where r is a random stream
-- (random.lua) and the line a chunk that needs nothing but the global `ampl`.  Each line runs alone; it may succeed or
-- raise.  A finding is
--   - an error that is no error object (code, message), unless the line asked for it: error("expected ...")
--   - a call that takes longer than 5 s
--   - a mode that stays (gradients, autocast), memory above the limit, tensors or graph nodes that stay
--   - what the expectation, a function of the results, returns: a text that says what is wrong
-- The line that runs is in the file $AMPL_FUZZ_LINE, for scripts/fuzz to print when the process ends under it.

local ampl = require "ampl"
local random = require "spec.fuzz.random"

local harness = {}

local SECONDS = 5                       -- a call's
local BATCH = 400                       -- lines between two looks at memory
local MODES = "ampl.is_grad_enabled() and not ampl.amp.is_autocast_enabled()"

local modes_are_default = load("return " .. MODES, "=modes", "t", {ampl = ampl})

-- What the line's own callbacks raise, and Lua of them.
local OWN = {"expected", "yield", "stack overflow", "not enough memory"}

local function is_own(e)
  for _, words in ipairs(OWN) do
    if type(e) == "string" and e:find(words, 1, true) then return true end
  end
  return type(e) == "table" and e.expected
end

local function complaint_about_error(e, tolerated)
  if is_own(e) or tolerated and type(e) == "string" and e:find(tolerated) then return nil end
  local whole = type(e) == "table" and type(e.code) == "string" and type(e.message) == "string" and #e.message > 0
  return not whole and "a bare error: " .. tostring(e) or nil
end

-- The file that tells which line runs.
local current = os.getenv("AMPL_FUZZ_LINE") and assert(io.open(os.getenv("AMPL_FUZZ_LINE"), "w"))

local function announce(line)
  if not current then return end
  current:seek("set")
  current:write(#line, "\n", line, "\n")
  current:flush()
end

-- Runs a line, or the chunk that stands for its end: what is wrong (nil: nothing), and what it returned.
function harness.run(line, expectation, tolerated, chunk)
  local syntax, whole = nil, not chunk  -- what a chunk made may live on, a mode too
  if not chunk then chunk, syntax = load(line, "=line", "t") end
  if not chunk then return "the line is no Lua: " .. syntax end
  announce(line)
  local t0 = os.clock()
  local results = table.pack(pcall(chunk))
  local seconds = os.clock() - t0
  local wrong
  if not results[1] then wrong = complaint_about_error(results[2], tolerated)
  elseif expectation then wrong = expectation(table.unpack(results, 2, results.n)) end
  if not wrong and seconds > SECONDS then wrong = ("took %.1f s"):format(seconds) end
  if not wrong and whole and not modes_are_default() then
    collectgarbage()
    collectgarbage()
    if not modes_are_default() then wrong = "a mode stays" end
  end
  return wrong, results
end

local function alive()
  collectgarbage()
  collectgarbage()
  local m = ampl.memory()
  return m.tensors + m.nodes, ("%d tensors, %d nodes, %d bytes"):format(m.tensors, m.nodes, m.live), m.live
end

local function resident()
  local f = io.open("/proc/self/statm")
  if not f then return 0 end
  local pages = tonumber(f:read("a"):match("^%d+ (%d+)"))
  f:close()
  return pages * 4096
end

-- Says which of these lines leaves something behind; run again one by one.
local function find_leak(lines, report)
  for _, line in ipairs(lines) do
    local before = alive()
    harness.run(line)
    local after, text = alive()
    if after > before then
      report("leaves behind " .. text .. " (before: " .. before .. ")", line)
      return
    end
  end
  report("tensors or nodes stay after these lines, from", lines[1] or "those before")
end

-- The options of the command line.
local function read_options()
  local o = {seconds = 60, seed = os.time(), calls = math.huge, findings = 20}
  local i = 1
  while arg[i] do
    local key = arg[i]:match("^%-%-(%a+)$")
    if key == "verbose" then o.verbose = true
    elseif key and o[key] and tonumber(arg[i + 1]) then
      o[key] = math.tointeger(tonumber(arg[i + 1])) or tonumber(arg[i + 1])
      i = i + 1
    else
      io.stderr:write("options: --seconds N --calls N --seed N --findings N --verbose\n")
      os.exit(2)
    end
    i = i + 1
  end
  return o
end

-- Runs `part` as the options of the command line say, and ends the process.  part(r, try) returns a line and its
-- expectation, or calls try(line, chunk) itself.  tolerated: a pattern of bare errors that its lines raise themselves.
function harness.main(part, name, tolerated)
  local o, calls, found, failed, lines = read_options(), 0, 0, 0, {}
  local function report(what, line)
    found = found + 1
    print(("FOUND %s: %s\n  %s"):format(name, what, line))
    io.stdout:flush()
  end
  local function try(line, chunk, expectation)
    if o.verbose then print(line) end
    local wrong, results = harness.run(line, expectation, tolerated, chunk)
    if wrong then report(wrong, line) end
    calls = calls + 1
    lines[#lines + 1] = not chunk and line or nil
    if results and not results[1] then failed = failed + 1 end
    return results and results[1]
  end
  local function step(r)
    local line, expectation = part(r, try)
    if line then try(line, nil, expectation) end
  end
  local start, r = os.time(), random.new(o.seed)
  for _ = 1, 50 do step(r) end          -- what is made once: modules, caches
  local before, next_look = alive(), calls + BATCH
  while calls < o.calls and os.time() - start < o.seconds and found < o.findings do
    step(r)
    if calls >= next_look then
      local now = alive()
      if now > before then
        find_leak(lines, report)
        now = alive()
      end
      if resident() > 3 << 30 then report("more than 3 GiB resident after", lines[#lines] or "the last line") end
      lines, before, next_look = {}, now, calls + BATCH
    end
  end
  print(("fuzz: %s, seed %d: %d calls (%d raised), %d findings"):format(name, o.seed, calls, failed, found))
  os.exit(found == 0, true)
end

return harness
