-- Tables of numbers written as text.

local core = require "ampl.core"
local args = require "ampl.args"
local raise = require "ampl.raise"

local signature = args.signature("csv", {
  {"path", "string"},
  {"label", "any?"},
  {"base", "integer?"},
  {"separator", "string?"},
  {"header", "boolean?"},
  {"skip", "integer", 0},
  {"dtype", "string", "f32"},
})

-- The column that `label` names, by position (negative: from the end) or by the header.
local function column(label, n, names)
  if type(label) == "string" then
    for i, name in ipairs(names or {}) do
      if name == label then return i end
    end
    raise("EARG", "csv", names and ("no column is called %q; there are %s"):format(label, table.concat(names, ", "))
                         or ("the file has no header to look for column %q in"):format(label))
  end
  local i = math.tointeger(label)
  if not i then raise("EARG", "csv", "label is the position or the name of a column") end
  local at = i < 0 and n + 1 + i or i
  if at < 1 or at > n then raise("EINDEX", "csv", ("label = %d; there are %d columns"):format(i, n)) end
  return at
end

---Reads a table: CRLF, a byte order mark, blanks around fields, empty lines, quotes and a missing last line end make
---no difference; anything else that is no number is refused with line and column.
---
---Options: label, the column (position or name) that is not input but label; base, the number of the first class in
---it: then labels are i64 and count from 1 (`base = 0` for files that count from 0), without it they stay numbers;
---separator (without one: the first of `,` `;` tab that the first line has, else blanks); header (true, false; without
---it, the first line is one when a field is no number); skip, lines to pass over at the top; dtype "f32" or "f64".
---@param path string
---@param options? table
---@return ampl.Tensor? x rows x columns
---@return ampl.Tensor|table|string y labels with `label`; names of the columns without; a message when x is nil
---@return table|string? names with `label`; the code when x is nil
return function(path, options)
  local o = signature(path, options)
  if o.dtype ~= "f32" and o.dtype ~= "f64" then
    raise("EDTYPE", "csv", ("dtype %q; f32 and f64 are possible"):format(o.dtype))
  end
  if o.separator and #o.separator ~= 1 then
    raise("EARG", "csv", ("separator %q; it is one character"):format(o.separator))
  end
  local x, names, code = core.csv_load(o.path, o.separator, o.header, o.skip, o.dtype)
  if not x then return nil, names, code end
  if o.label == nil then return x, names end
  local n = x.shape[2]
  local at, rest = column(o.label, n, names), {}
  for i = 1, n do
    if i ~= at then rest[#rest + 1] = i end
  end
  local y = x:select(2, at)
  y = o.base and y:round():to("i64") + (1 - o.base) or y:clone()
  local ampl = require "ampl"
  local inputs = #rest > 0 and x:index_select(2, ampl.tensor(rest, {dtype = "i64"})) or x:narrow(2, 1, 0)
  if names then table.remove(names, at) end
  return inputs, y, names
end
