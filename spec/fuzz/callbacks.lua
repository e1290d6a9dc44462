-- Random programs of hooks, Functions, finalisers, coroutines, scopes and modes whose bodies raise, yield, recurse and
-- free: whatever a callback does, the engine stays usable.
--   ampl spec/fuzz/callbacks.lua [--seconds N] [--calls N] [--seed N]

package.path = (arg[0]:match("^(.*)/spec/fuzz/") or ".") .. "/?.lua;" .. package.path
local harness = require "spec.fuzz.harness"

-- A program works on the table x, of six tensors, which any body may read, write, free and clear.  In a statement, ANY
-- is a place of x, T a tensor from there, BODY a block of statements.
local DEPTH = 4

local PLAIN = {
  "ANY = ampl.tensor({1., 2.}, {requires_grad = true})", "ANY = ampl.randn(2)", "ANY = T * T", "ANY = T:sum()",
  "ANY = T:view(-1)", "ANY = ampl.cat({T:view(-1), T:view(-1)}):narrow(1, 1, 2)", "ANY = ampl.where(T:gt(0), T, 1)",
  "T:add_(1)", "T:copy_(T)", "ANY = nil", "local t = ANY if t then t:free() end", "if ANY then T:free() end",
  "T.grad = nil", "T.grad = T", "T:requires_grad_(true)", "ANY = T:detach()", "T:keep()", "x = {}",
  "T:sum():backward()", "T:sum():backward({retain_graph = true})",
  "ANY = ampl.grad(T:sum(), {T}, {allow_unused = true})",
  "ANY = ampl.grad(T:sum(), {T}, {allow_unused = true, create_graph = true})",
  "collectgarbage()", "collectgarbage('step')", "coroutine.yield(1)",
  "error('expected')", "error({expected = true})",
  "local _ <close> = ampl.no_grad()", "local _ <close> = ampl.enable_grad()", "local _ <close> = ampl.inference_mode()",
  "local _ <close> = ampl.amp.autocast{dtype = 'f16'}", "local _ <close> = ampl.scope()",
  "ampl.no_grad()", "s = ampl.scope()", "if s then s:close() end", "m = ampl.no_grad()", "if m then m:close() end",
  "if m then m.__gc(m) end", "if h then h:remove() end",
  "ampl.set_detect_anomaly(true)", "ampl.set_detect_anomaly(false)",
  "scaler = ampl.amp.GradScaler{init_scale = 8}", "if scaler then ANY = scaler:scale(T) end",
  "if scaler then scaler:step(ampl.optim.SGD({T}, {lr = 1})) scaler:update() end", "if f then ANY = f(T) end",
  "if co and coroutine.status(co) == 'suspended' then coroutine.resume(co) end",
  "if co and coroutine.status(co) == 'suspended' then coroutine.close(co) end",
}

local NESTING = {
  "h = T:register_hook(function(g) BODY end)", "h = T:register_hook(function(g) BODY return g * 2 end)",
  "h = T:register_hook(function(g) BODY return T end)",
  "f = ampl.Function{forward = function(ctx, a) BODY ctx:save(a) return a * 2 end, " ..
    "backward = function(ctx, g) BODY local t = ctx:saved() return g * t end} ANY = f(T)",
  "f = ampl.Function{forward = function(ctx, a) BODY return a, a end, " ..
    "backward = function(ctx, g, k) BODY return g end} ANY, ANY = f(T)",
  "f = ampl.Function{forward = function(ctx, a) x[1] = ctx BODY return a + 1 end, " ..
    "backward = function(ctx, g) BODY return T end} ANY = f(T)",
  "setmetatable({}, {__gc = function() BODY end})",
  "local _ <close> = setmetatable({}, {__close = function() BODY end})",
  "x.keep = setmetatable({}, {__close = function() BODY end, __gc = function() BODY end})",
  "pcall(function() BODY end)", "coroutine.wrap(function() BODY end)()",
  "co = coroutine.create(function() BODY coroutine.yield() BODY end) coroutine.resume(co)",
  "ampl.scope(function() BODY end)", "ampl.no_grad(function() BODY end)", "ampl.detect_anomaly(function() BODY end)",
  "ampl.amp.autocast({dtype = 'bf16'}, function() BODY end)", "ampl.fork_rng(function() BODY end)",
  "for i = 1, 3 do BODY end", "ampl.on_warning(function() BODY end)",
  "ampl.gradcheck(function(a) BODY return a * a end, {T:double():detach():requires_grad_(true)})",
}

local function body(r, depth)
  local parts = {}
  local fill = {
    ANY = function() return ("x[%d]"):format(r:below(6) + 1) end,
    T = function() return ("(x[%d] or ampl.ones(2))"):format(r:below(6) + 1) end,
    BODY = function() return body(r, depth + 1) end,
  }
  for i = 1, 1 + r:below(depth == 0 and 12 or 3) do
    local template = r:pick(depth < DEPTH and r:chance(2) and NESTING or PLAIN)
    local statement = template:gsub("%f[%w]%u+%f[%W]", function(word) return fill[word] and fill[word]() end)
    parts[i] = statement:find("^local _ <close>") and statement or "do " .. statement .. " end"
  end
  return table.concat(parts, " ")
end

-- Everything that a program sets outside its own table goes back.
local AROUND = "local x, s, m, h, f, co, scaler = {} local ok, e = pcall(function() BODY end) " ..
  "if co then pcall(coroutine.close, co) end x, s, m, h, f, co, scaler = nil ampl.set_detect_anomaly(false) " ..
  "ampl.on_warning(function() end) collectgarbage() collectgarbage() if not ok then error(e, 0) end"

-- The programs' own mistakes, such as a method of what is no tensor any more, are Lua's errors.
harness.main(function(r) return (AROUND:gsub("BODY", (body(r, 0):gsub("%%", "%%%%")))) end, "callbacks", "attempt to")
