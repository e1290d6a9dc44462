-- Tables whose fields are modules that load at first use, so that a program pays for what it names.

---A table of the modules `prefix .. "." .. name`.  Names that are not listed are asked of `rest`, when there is one:
---rest.load(name) gives the value or nil, rest.names() the names it has.
---@param prefix string
---@param names string[]
---@param rest? {load: (fun(name: string): any), names: fun(): string[]}
---@return table
return function(prefix, names, rest)
  local known = {}
  for _, name in ipairs(names) do known[name] = true end

  local function index(t, name)
    local value
    if known[name] then
      value = require(prefix .. "." .. name)
    elseif rest then
      value = rest.load(name)
    end
    rawset(t, name, value)
    return value
  end

  return setmetatable({}, {
    __index = index,
    __pairs = function(t)                               -- all names, also those not loaded yet (completion, help)
      for _, name in ipairs(names) do index(t, name) end
      for _, name in ipairs(rest and rest.names() or {}) do index(t, name) end
      return next, t, nil
    end,
  })
end
