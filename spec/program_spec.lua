-- The program `ampl` as a user meets it: options, exit codes, signals; the prompt through pipes and a real terminal.

local shell = require "spec.support.shell"
local reason = require "spec.support.pending"
local program = shell.program()
teardown(shell.clean)

-- Runs `ampl ARGUMENTS` by the shell: what it wrote on both outputs, and its exit code.
local function run(arguments, input)
  return shell.run(shell.quote(program) .. " " .. arguments, input)
end

describe("the program's options", function()
  it("runs a string", function()
    local out, err, code = run [[-e 'print(1 + 1)']]
    assert.same({"2\n", "", 0}, {out, err, code})
  end)

  it("presets the global ampl, and require gives the same", function()
    assert.equal("true\tampl 0.1.0\n", (run [[-e 'print(ampl == require "ampl", ampl._VERSION)']]))
  end)

  it("runs -e, -l and a script in order, with arg and ...", function()
    local script = shell.file("print(arg[0] ~= nil, arg[1], #arg, arg[-1], ...) print(x, type(m))", ".lua")
    local out, err, code = run("-e 'x = 7' -l m=string " .. script .. " one two")
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("true\tone\t2\tm=string\tone\ttwo\n7\ttable\n", out)
  end)

  it("takes -lMOD and -eSTAT in one word", function()
    assert.equal("true\n", (run [[-lstring '-eprint(string ~= nil)']]))
  end)

  it("reads the standard input as a script, by itself and by -", function()
    assert.equal("1\n", (run("", "print(1)")))
    assert.equal("1\ta\n", (run("- a", "print(1, ...)")))
  end)

  it("tells its version and how it is used, on the standard output", function()
    for _, option in ipairs {"-v", "--version"} do
      local out, err, code = run(option)
      assert.matches("^ampl %d+%.%d+%.%d+", out)
      assert.same({"", 0}, {err, code})
    end
    local out, err, code = run "--help"
    assert.matches("^usage: ampl", out)
    assert.same({"", 0}, {err, code})
  end)

  it("lists the devices", function()
    local out, err, code = run "--devices"
    assert.matches("cpu", out)
    assert.same({"", 0}, {err, code})
  end)

  it("exits with 2 when it is used wrongly", function()
    for _, arguments in ipairs {"-x", "--nonsense", "-e", "-l", "-ix", "-Wall"} do
      local out, err, code = run(arguments)
      assert.same({"", 2}, {out, code}, arguments)
      assert.matches("^ampl: .*\nusage: ampl", err)
    end
  end)

  it("ends the options at --", function()
    local script = shell.file("print(#arg)", ".lua")
    assert.equal("1\n", (run("-- " .. script .. " -x")))
  end)

  it("runs AMPL_INIT first, unless -E", function()
    shell.with_env({AMPL_INIT = "y = 5"}, function(env)
      assert.equal("5\n", (shell.run(env .. shell.quote(program) .. " -e 'print(y)'")))
      assert.equal("nil\n", (shell.run(env .. shell.quote(program) .. " -E -e 'print(y)'")))
    end)
    local init = shell.file("y = 6", ".lua")
    shell.with_env({AMPL_INIT = "@" .. init}, function(env)
      assert.equal("6\n", (shell.run(env .. shell.quote(program) .. " -e 'print(y)'")))
    end)
  end)

  it("honours LUA_PATH, unless -E", function()
    shell.with_env({LUA_PATH = "/nowhere/?.lua;;"}, function(env)
      local check = [[ -e 'print(package.path:find("/nowhere/", 1, true) ~= nil)']]
      assert.equal("true\n", (shell.run(env .. shell.quote(program) .. check)))
      assert.equal("false\n", (shell.run(env .. shell.quote(program) .. " -E" .. check)))
    end)
  end)

  it("selects the incremental collector", function()
    assert.equal("incremental\n", (run [[-e 'print(collectgarbage("incremental"))']]))
  end)

  it("shows warnings with -W only", function()
    local _, err = run [[-e 'warn "careful"']]
    assert.equal("", err)
    _, err = run [[-W -e 'warn "careful"']]
    assert.matches("careful", err)
    _, err = run [[-W -e 'warn "@off"; warn "careful"']]
    assert.equal("", err)
  end)
end)

describe("the program's commands", function()
  it("doctor finds the machine fit", function()
    local out, err, code = run "doctor"
    assert.same({"", 0}, {err, code})
    assert.matches("arithmetic +right", out)
  end)

  it("inspect lists what is in a file", function()
    local ampl, path = require "ampl", shell.file("", ".safetensors")
    assert(ampl.safetensors.save(path, {["layer.weight"] = ampl.full({2, 3}, 0.5)}, {made = "here"}))
    local out, err, code = run("inspect " .. path)
    assert.same({"", 0}, {err, code})
    assert.matches("layer%.weight +f32 +{2, 3} +0%.5 to 0%.5", out)
    assert.matches("metadata made: here", out)
    assert.matches("1 tensors, 6 elements, 24 bytes", out)
    out, err, code = run "inspect /no/such/file.safetensors"
    assert.same({"", 1}, {out, code})
    assert.matches("/no/such/file", err)
    out, err, code = run "inspect"
    assert.same({"", 2}, {out, code})
    assert.matches("usage", err)
  end)
end)

describe("a script that fails", function()
  it("exits with 1 and shows where", function()
    local script = shell.file("local function f()\n  local x = nil\n  return x.y\nend\nf()\n", ".lua")
    local out, err, code = run(script)
    assert.same({"", 1}, {out, code})
    assert.matches("^ampl: .*:3: attempt to index a nil value", err)
    assert.matches("stack traceback:", err)
    assert.matches(":5: in main chunk", err)
  end)

  it("shows ampl's error objects as text", function()
    local script = shell.file("local x = ampl.ones(2, 3)\nreturn x:matmul(x)\n", ".lua")
    local out, err, code = run(script)
    assert.same({"", 1}, {out, code})
    assert.matches("^ampl: .*matmul", err)
    assert.matches(":2:", err)
    assert.matches("stack traceback:", err)
  end)

  it("says what other error objects are", function()
    local _, err, code = run [[-e 'error({})']]
    assert.equal(1, code)
    assert.matches("error object is a table value", err)
    _, err, code = run [[-e 'error(setmetatable({}, {__tostring = function() return "mine" end}))']]
    assert.equal(1, code)
    assert.matches("^ampl: mine", err)
  end)

  it("may be missing or wrong", function()
    local _, err, code = run "/no/such/script.lua"
    assert.equal(1, code)
    assert.matches("/no/such/script.lua", err, 1, true)
    _, err, code = run("-", "x = = 1")
    assert.equal(1, code)
    assert.matches("stdin:1:", err)
  end)

  it("may exit by itself", function()
    local _, _, code = run [[-e 'os.exit(7)']]
    assert.equal(7, code)
  end)

  it("fails when its output is lost", function()
    local _, err, code = shell.run(shell.quote(program) .. " -e 'print(1)' >/dev/full")
    assert.equal(1, code)
    assert.matches("standard output", err)
  end)
end)

describe("an interruption", function()
  -- Starts the script, waits until it has written "ready", sends SIGINT `signals` times.
  local function interrupt(code, signals)
    local script = shell.file('io.stdout:write("ready\\n") io.stdout:flush()\n' .. code, ".lua")
    return shell.interrupt(shell.quote(program) .. " " .. script, signals)
  end

  it("raises an error in the script, exit code 130", function()
    local _, err, code = interrupt("while true do end", 1)
    assert.equal(130, code)
    assert.matches("interrupted", err)
    assert.matches("stack traceback:", err)
  end)

  it("reaches a coroutine", function()
    local _, _, code = interrupt("coroutine.wrap(function() while true do end end)()", 1)
    assert.equal(130, code)
    _, _, code = interrupt([[
      local inner = function() while true do end end
      local outer = function() coroutine.wrap(inner)() end
      local ok, e = coroutine.resume(coroutine.create(outer))
      assert(not ok) error(e, 0)]], 1)
    assert.equal(130, code)
  end)

  it("is an error of code EINTR that a script may catch, to save its work", function()
    local out, _, code = interrupt([[
      local ok, e = pcall(function() while true do end end)
      print(ok, e.code, ampl.ones(2):sum():item())]], 1)
    assert.equal(0, code)
    assert.equal("ready\nfalse\tEINTR\t2.0\n", out)
  end)

  it("ends a long call of the library", function()
    local _, err, code = interrupt([[
      local x = ampl.ones(512, 512)
      while true do x:matmul(x) end]], 1)
    assert.equal(130, code)
    assert.matches("interrupted", err)
  end)

  it("kills at the second time", function()
    local _, _, code = interrupt([[
      pcall(function() while true do end end)
      while true do end]], 2)
    assert.equal(130, code)
  end)
end)

describe("the prompt behind a pipe", function()
  -- What `ampl -i` prints for the lines, without the prompts and the banner.
  local function prompt(lines)
    local out, err = run("-i", lines)
    out = out:gsub("^[^\n]*\n", ""):gsub("\n$", "")
    return (out:gsub("^[> ]+", ""):gsub("\n[> ]+", "\n")), err
  end

  it("prints the values of expressions", function()
    assert.equal("2\n", (prompt "1 + 1\n"))
    assert.equal("2\n", (prompt "= 1 + 1\n"))
    assert.equal("1\t2\tnil\n", (prompt "1, 2, nil\n"))
    assert.equal("3\n", (prompt "return 3\n"))
  end)

  it("shows tables by their entries", function()
    assert.equal("{1, 2, a = {b = \"c\"}}\n", (prompt "{1, 2, a = {b = 'c'}}\n"))
    assert.equal("{2, 3}\n", (prompt "ampl.ones(2, 3).shape\n"))
  end)

  it("prints nothing for statements and behind ;", function()
    assert.equal("5\n", (prompt "x = 5\nx;\nx\n"))
  end)

  it("goes on until a statement or an expression is whole", function()
    assert.equal("1\n2\n", (prompt "for i = 1, 2 do\nprint(i)\nend\n"))
    assert.equal("6\n", (prompt "(1 +\n2 +\n3)\n"))
  end)

  it("goes on after an error, and runs a failing statement once", function()
    local out, err = prompt "print('once') error('boo')\n1 + 1\n"
    assert.equal("once\n2\n", out)
    assert.matches("boo", err)
    assert.is_nil(err:find("boo.*boo"))
  end)

  it("says what is wrong with the beginning of a statement at the end", function()
    local _, err = prompt "for"
    assert.matches("<name> expected near <eof>", err)
  end)

  it("keeps the last value in _, a tensor without its graph", function()
    assert.equal("7\n8\n", (prompt "7\n_ + 1\n"))
    assert.equal("false\n", (prompt [[
x = ampl.ones(2, {requires_grad = true})
(x * 2):sum();
_.requires_grad
]]))
  end)

  it("explains", function()
    assert.matches("softmax", (prompt "help('softmax')\n"))
  end)

  it("takes its prompts from _PROMPT and _PROMPT2", function()
    local out = run("-i", "_PROMPT = 'one: ' _PROMPT2 = 'two: '\n(1 +\n1)\n")
    assert.matches("one: two: 2\n", out)
  end)

  it("goes on whatever globals and texts of values raise", function()
    local out, _, code = run("-i", table.concat({
      "setmetatable(_G, {__index = error, __newindex = error, __pairs = error});", "nothing", "'a' .. 1",
      "rawset(_G, '_PROMPT', setmetatable({}, {__tostring = error}));", "'a' .. 2",
      "rawset(_G, '_PROMPT', setmetatable({}, {__tostring = function() error('x') end}));", "'a' .. 3",
      "rawset(_G, '_PROMPT', nil);", "setmetatable({}, {__tostring = error})",
      "setmetatable({}, {__tostring = function() return 5 end})", "error(setmetatable({}, {__tostring = error}))",
      "error(setmetatable({}, {__index = error}))", "rawset(_G, 'print', nil);", "'not shown'",
      "rawset(_G, 'print', io.write);", "'a' .. 4",
    }, "\n") .. "\n")
    assert.equal(0, code)
    for i = 1, 4 do assert.matches("a" .. i, out) end
  end)

  it("writes no escapes", function()
    local out = shell.run("TERM=xterm " .. shell.quote(program) .. " -i", "1\n")
    assert.is_nil(out:find("\27"))
  end)
end)

describe("the report of an error that", function()
  it("has no text is still one", function()
    for _, e in ipairs{"setmetatable({}, {__tostring = error})", "setmetatable({}, {__index = error})", "{}", "nil",
                       "setmetatable({}, {__tostring = function() return {} end})", "print"} do
      local out, err, code = run("-e " .. shell.quote("error(" .. e .. ")"))
      assert.same({"", 1}, {out, code})
      assert.matches("^ampl: ", err)
    end
  end)
end)

describe("the report of an error", function()
  local function report(code)
    return shell.run(shell.quote(program) .. " -e " .. shell.quote(code) .. " 2>&1"):match("^[^\n]*")
  end

  it("says which name is near a misspelt one", function()
    for code, near in pairs {
      ["ampl.ones(2):sofmax(1)"] = "softmax", ["ampl.nn.Conv2D(1, 1, 1)"] = "Conv2d",
      ["ampl.optim.Adamw({})"] = "AdamW", ["ampl.rndn(2)"] = "randn",
      ["ampl.softmax(ampl.ones(2), {dmi = 1})"] = "dim", ["prnt(1)"] = "print",
      ["ampl.nn.Linear(1, 1, {bais = true})"] = "bias", ["ampl.nm.Linear(1, 1)"] = "nn",
      ["ampl.nn.Linear(1, 1):foward(1)"] = "forward",
    } do
      assert.matches("did you mean " .. near .. "?", report(code), 1, true)
    end
    assert.is_nil(report("local x x.y = 1"):find("did you mean", 1, true))
    assert.is_nil(report("ampl.quite_another_thing()"):find("did you mean", 1, true))
  end)

  it("says that a method wants a colon", function()
    for _, code in ipairs {
      "ampl.optim.SGD(ampl.nn.Linear(1, 1), {lr = 1}).step()", "ampl.nn.Linear(1, 1).train()", "ampl.ones(1).relu()",
      "ampl.amp.GradScaler().scale(ampl.ones(1))", "ampl.ones(1).size()", "ampl.nn.Linear(1, 1).parameters()",
    } do
      assert.matches("colon", report(code))
    end
    assert.is_nil(report("ampl.ones(2):matmul(ampl.ones(3))"):find("colon", 1, true))
  end)
end)

describe("completion", function()
  local complete = require "ampl.cli.complete"

  it("completes globals, fields and what modules have", function()
    local insert, list = complete "x = coll"
    assert.equal("ectgarbage", insert)
    assert.same({"collectgarbage"}, list)
    assert.equal("mat", (complete "print(string.for"))
    assert.equal("near", (complete "m = ampl.nn.Li"))
  end)

  it("completes the methods of tensors", function()
    _G.ampl_spec_tensor = require "ampl".ones(2)
    local insert, list = complete "y = ampl_spec_tensor:log_soft"
    _G.ampl_spec_tensor = nil
    assert.equal("max", insert)
    assert.same({"log_softmax"}, list)
  end)

  it("finds nothing where there is nothing", function()
    assert.same({"", {}}, {complete "no_such_name.a"})
    assert.same({"", {}}, {complete "print("})
  end)
end)

describe("the prompt at a terminal", function()
  if not shell.has "tmux" then
    pending(reason("tmux"))
    return
  end
  local terminal

  before_each(function() terminal = shell.terminal(shell.quote(program)) end)
  after_each(function() terminal:close() end)

  it("edits, completes, and ends by Ctrl-D", function()
    terminal:type("1 + 1", "Enter")
    terminal:expect("\n2\n")
    terminal:type("ampl.nn.Lin", "Tab")
    terminal:expect("ampl.nn.Linear")
    terminal:type("C-a", "C-k", "prinX", "BSpace", "t(41 + 1)", "Enter")
    terminal:expect("\n42\n")
    terminal:type("C-d")
    terminal:expect("exit code 0")
  end)

  it("recalls lines, also in the next session", function()
    terminal:type("first = 'remembered'", "Enter")
    terminal:type("C-d")
    terminal:expect("exit code 0")
    local again = shell.terminal(shell.quote(program), terminal.state)
    again:type("Up")
    again:expect("> first = 'remembered'")
    again:close()
  end)

  it("stops what runs by Ctrl-C and keeps the session", function()
    terminal:type("kept = 11", "Enter", "while true do end", "Enter")
    terminal:expect("while true do end\n")
    terminal:type("C-c")
    terminal:expect("interrupted")
    terminal:type("coroutine.wrap(function() while true do end end)()", "Enter")
    terminal:expect("end end%)%(%)\n")
    terminal:type("C-c")
    terminal:expect("interrupted.*interrupted")
    terminal:type("while true do pcall(function() while true do end end) end", "Enter")
    terminal:expect("pcall[^\n]*end\n")
    terminal:type("C-c")
    terminal:type("C-c")
    terminal:expect("interrupted.*interrupted.*interrupted")
    terminal:type("kept * 2", "Enter")
    terminal:expect("\n22\n")
  end)

  it("drops a line by Ctrl-C", function()
    terminal:type("for i = 1, 3 do", "Enter")
    terminal:expect("\n>> ")
    terminal:type("C-c")
    terminal:expect("%^C\n> ")
    terminal:type("5 + 5", "Enter")
    terminal:expect("\n10\n")
  end)

  it("says once that locals are gone", function()
    terminal:type("local a = 1", "Enter", "local b = 1", "Enter", "99", "Enter")
    local screen = terminal:expect("\n99\n")
    assert.matches("a local is gone", screen)
    assert.is_nil(screen:find("a local is gone.*a local is gone"))
  end)

  it("reads plainly where TERM is dumb", function()
    local dumb = shell.terminal("env TERM=dumb " .. shell.quote(program))
    dumb:type("6 * 7", "Enter")
    dumb:expect("\n42\n")
    dumb:type("while true do end", "Enter")
    dumb:type("C-c")
    dumb:expect("interrupted")
    dumb:type("C-d")
    dumb:expect("exit code 0")
    dumb:close()
  end)
end)
