-- Where things lie: the project, the reference numbers, the data.

local folders = {}

local here = debug.getinfo(1, "S").source:match("^@(.*)spec/support/[^/]*$")
folders.project = here == "" and "./" or here or "./"

local function found(path)
  local f = io.open(path)
  if f then f:close() end
  return f ~= nil
end

local function look(variable, otherwise, name, file)
  local root = os.getenv(variable) or folders.project .. otherwise
  local path = (root:gsub("/+$", "")) .. "/" .. name
  if found(path .. (file and "/" .. file or "")) then return path end
  return nil, ("%s is not there: %s gives its place"):format(path, variable)
end

-- A folder of reference numbers; nil and why when it is not there.
function folders.golden(name, file)
  return look("AMPL_GOLDEN", "../shared/golden", name, file or "README.md")
end

-- A file of the data sets; nil and why.
function folders.data(name) return look("AMPL_DATA", "../shared/data", name) end

return folders
