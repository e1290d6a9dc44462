-- Running programs from specs: pipes, signals, a terminal (tmux).

local shell = {}
local made = {}             -- files to be removed

--- The program under test: the one that runs the specs.
function shell.program()
  local i = 0
  while arg[i - 1] do i = i - 1 end
  local path = arg[i]
  return path:find("/", 1, true) and path or "build/ampl"
end

function shell.quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

function shell.has(name)
  return os.execute("command -v " .. name .. " >/dev/null 2>&1") == true
end

local function read_all(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("a")
  f:close()
  return text
end

--- A new temporary file with this text; its path.
function shell.file(text, suffix)
  local pipe = io.popen("mktemp --suffix=" .. (suffix or ""))
  local path = pipe:read("l")
  pipe:close()
  made[#made + 1] = path
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
  return path
end

--- Removes all files that were made.
function shell.clean()
  for _, path in ipairs(made) do os.remove(path) end
  made = {}
end

--- Runs a shell command: standard output, standard error, exit code.
function shell.run(command, input)
  local stdin = shell.file(input or "")
  local out, err = shell.file "", shell.file ""
  local _, how, code = os.execute(("timeout -k 5 120 sh -c %s <%s >%s 2>%s"):format(
    shell.quote(command), stdin, out, err))
  local a, b = read_all(out), read_all(err)
  os.remove(stdin)
  os.remove(out)
  os.remove(err)
  return a, b, how == "signal" and 128 + code or code
end

--- fn(prefix): `prefix` sets the variables for a command behind it.
function shell.with_env(variables, fn)
  local parts = {}
  for name, value in pairs(variables) do parts[#parts + 1] = name .. "=" .. shell.quote(value) .. " " end
  fn(table.concat(parts))
end

--- Starts a command, waits for its line "ready", sends SIGINT `signals` times, waits for its end (killed after 20 s).
function shell.interrupt(command, signals)
  local out, err, pid = shell.file "", shell.file "", shell.file ""
  local _, _, code = os.execute("exec bash -c " .. shell.quote(([[
    timeout -s KILL 20 bash -c %s >%s 2>%s & job=$!
    until grep -q ready %s; do sleep 0.02; kill -0 $job 2>/dev/null || break; done
    for i in $(seq %d); do sleep 0.3; kill -INT $(cat %s); done
    wait $job]]):format(shell.quote("echo $$ >" .. pid .. "; exec " .. command), out, err, out, signals, pid)))
  return read_all(out), read_all(err), code
end

-- ------------------------------------------------------------------------------------------------ terminal

local Terminal = {}
Terminal.__index = Terminal
local count = 0

--- A terminal that runs `command`, then shows its exit code. `state`: the folder of its history.
function shell.terminal(command, state)
  count = count + 1
  local pipe = io.popen("mktemp -d; echo $$")
  local folder, id = pipe:read("l", "l")
  pipe:close()
  local self = setmetatable({state = state or folder,
    tmux = ("tmux -L ampl-spec-%s-%d -f /dev/null"):format(id, count)},
                            Terminal)
  local inner = ("XDG_STATE_HOME=%s %s; echo exit code $?; sleep 60"):format(self.state, command)
  assert(os.execute(("%s new-session -d -x 100 -y 50 %s"):format(self.tmux, shell.quote(inner))))
  self:expect("> ")
  return self
end

--- Sends keys in tmux's notation; texts are typed.
function Terminal:type(...)
  for _, key in ipairs {...} do
    local named = key:match("^C%-%a$") or key == "Enter" or key == "Tab" or key == "BSpace" or key == "Up"
    os.execute(("%s send-keys %s %s"):format(self.tmux, named and "" or "-l", shell.quote(key)))
    os.execute("sleep 0.1")
  end
end

function Terminal:screen()
  local pipe = io.popen(self.tmux .. " capture-pane -p -J")
  local text = pipe:read("a")
  pipe:close()
  return text
end

--- Waits until the screen matches the pattern; the screen.
function Terminal:expect(pattern)
  local text
  for _ = 1, 200 do
    text = self:screen()
    if text:find(pattern) then return text end
    os.execute("sleep 0.05")
  end
  error(("the terminal does not show %q:\n%s"):format(pattern, text), 2)
end

function Terminal:close()
  os.execute(self.tmux .. " kill-server 2>/dev/null")
end

return shell
