-- busted's output: what failed, then "N passed, M failed, K skipped" as the last line.

return function()
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()

  local function describe(kind, t)
    io.write(("\n%s: %s\n"):format(kind, t.name or "?"))
    if t.trace and t.trace.short_src then
      io.write(("  %s:%s\n"):format(t.trace.short_src, tostring(t.trace.currentline)))
    end
    local message = t.message == nil and "" or type(t.message) == "string" and t.message or tostring(t.message)
    io.write("  ", (message:gsub("\n", "\n  ")), "\n")
    if kind == "error" and t.trace and t.trace.traceback then io.write(t.trace.traceback, "\n") end
  end

  local function at_end()
    for _, t in pairs(handler.failures) do describe("failure", t) end
    for _, t in pairs(handler.errors) do describe("error", t) end
    for _, t in pairs(handler.pendings) do
      io.write(("skipped: %s%s\n"):format(t.name or "?", t.message and ": " .. tostring(t.message) or ""))
    end
    io.write(("%d passed, %d failed, %d skipped\n"):format(handler.successesCount,
      handler.failuresCount + handler.errorsCount, handler.pendingsCount))
    io.flush()
    return nil, true
  end

  busted.subscribe({"suite", "end"}, at_end)
  return handler
end
