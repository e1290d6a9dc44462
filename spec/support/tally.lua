-- Counts what a spec file did, case by case, and says so once at its end: what was skipped, how often and why.

local Tally = {}
Tally.__index = Tally

local function new(name) return setmetatable({name = name, passed = 0, failed = 0, skipped = 0, why = {}}, Tally) end

function Tally:pass() self.passed = self.passed + 1 end

function Tally:fail() self.failed = self.failed + 1 end

-- `about` (one op, one module ...) was skipped for the reason `why`.
function Tally:skip(why, about)
  self.skipped = self.skipped + 1
  local list = self.why[why] or {}
  self.why[why] = list
  list.n = (list.n or 0) + 1
  if about and not list[about] then
    list[about] = true
    list[#list + 1] = about
  end
end

function Tally:report()
  local text = "%s: %d cases passed, %d failed, %d skipped"
  local counts = text:format(self.name, self.passed, self.failed, self.skipped)
  local lines = {counts}
  local reasons = {}
  for why in pairs(self.why) do reasons[#reasons + 1] = why end
  table.sort(reasons)
  for _, why in ipairs(reasons) do
    local list = self.why[why]
    table.sort(list)
    lines[#lines + 1] = ("  %d skipped: %s%s%s"):format(list.n, why, #list > 0 and ": " or "", table.concat(list, " "))
  end
  io.stdout:write("\n", table.concat(lines, "\n"), "\n")
end

return new
