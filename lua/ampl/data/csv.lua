-- Tables of numbers written as text.

local core = require "ampl.core"
local args = require "ampl.args"
local raise = require "ampl.raise"

local signature = args.signature("data.csv", {
  {"path", "string"},
  {"label", "any?"},
  {"base", "integer?"},
  {"separator", "string?"},
  {"header", "boolean?"},
  {"skip", "integer", 0},
  {"dtype", "string", "f32"},
  {"comment", "string?", "#"},
})

---Reads a table: lines that end in LF, CRLF or CR, a byte order mark, blanks around fields, empty lines, comments,
---quotes and a missing last line end make no difference; anything else that is no number is refused with line and
---column.
---
---Options: label, the column (position or name) that is not input but label; base, the number of the first class in
---it: then labels are whole numbers, read exactly as i64, and count from 1 (`base = 0` for files that count from 0),
---without it they stay numbers; separator (without one: the first of `,` `;` tab that the first line has, else blanks);
---header (true, false; without it, the first line is one when none of its fields is a number); skip, lines to pass over
---at the top; dtype "f32" or "f64"; comment, what comments begin with ("#"; false: there are none).
---@param path string
---@param options? table
---@return ampl.Tensor? x rows x columns
---@return ampl.Tensor|table|string y labels with `label`; names of the columns without; a message when x is nil
---@return table|string? names with `label`; the code when x is nil
return function(path, options)
  local o = signature(path, options)
  if o.dtype ~= "f32" and o.dtype ~= "f64" then
    raise("EDTYPE", "data.csv", ("dtype %s; f32 and f64 are possible"):format(args.shown(o.dtype)))
  end
  local label = type(o.label) == "string" and o.label or type(o.label) == "number" and math.tointeger(o.label)
    or nil
  if o.label and not label then
    raise("EARG", "data.csv", "label must be the position or the name of a column, not " .. args.shown(o.label))
  end
  local x, y, names = core.csv_load(o.path, o.separator, o.header, o.skip, o.dtype, o.comment, label, o.base)
  if not x or label then return x, y, names end
  return x, names
end
