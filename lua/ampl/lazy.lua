-- Tables whose fields are modules that load at first use, so that a program pays for what it names.

---A table of the modules `prefix .. "." .. name`; `modules` maps a name to another module, for files of several things:
---the module is then asked for the field of that name.
---@param prefix string
---@param names string[]
---@param modules? table<string, string>
---@return table
return function(prefix, names, modules)
  local known, list = {}, {}
  for _, name in ipairs(names) do
    known[name] = prefix .. "." .. name
    list[#list + 1] = name
  end
  for name in pairs(modules or {}) do list[#list + 1] = name end
  table.sort(list)

  local function index(t, name)
    local value
    if known[name] then
      value = require(known[name])
    elseif modules and modules[name] then
      value = require(modules[name])[name]
    end
    rawset(t, name, value)
    return value
  end

  return setmetatable({}, {
    __index = index,
    __pairs = function(t)                               -- all names, also those not loaded yet (completion, help)
      for _, name in ipairs(list) do index(t, name) end
      return next, t, nil
    end,
  })
end
