-- Text as a data set of windows: x is seq_len token ids, y the same one place later.

local Class = require "ampl.class"
local args = require "ampl.args"
local core = require "ampl.core"
local raise = require "ampl.raise"
local row = require "ampl.data.row"
local ampl = require "ampl"

local signature = args.signature("data.text", {
  {"path", "string"},
  {"seq_len", "integer", 128},
  {"stride", "integer?"},
  {"tokenizer", "any", "byte"},
})

---@class ampl.data.Text : ampl.Class
---@field vocab integer number of token ids
---@field tokens ampl.Tensor all of the text
---@operator len: integer
local Text = Class:extend("Text")

-- The ids in a list, each passed to `show`, one behind the other.
local function decoded(ids, vocab, show)
  local out = {}
  for i, id in ipairs(ids) do
    id = math.type(id) and math.tointeger(id)
    if not id or id < 1 or id > vocab then
      raise("EINDEX", "data.text", ("id %s at position %d; ids are 1 to %d"):format(args.shown(ids[i]), i, vocab))
    end
    out[i] = show(id)
  end
  return table.concat(out)
end

local function check_text(text)
  if type(text) ~= "string" then raise("EARG", "data.text", "encode takes a string, not " .. args.shown(text)) end
  return text
end

-- How files are read, by the name of the tokenizer: load(path) -> a tokenizer and the file's ids, or nil, message,
-- code.  A tokenizer has vocab, encode(text) -> ids from 1, and decode(ids); ids may be bytes, each one less.
local tokenizers = {}

local byte = {vocab = 256}

function byte:encode(text) return check_text(text) end

function byte:decode(ids) return decoded(ids, 256, function(id) return string.char(id - 1) end) end

function tokenizers.byte(path)
  local ids, message, code = core.bytes_load(path)
  if not ids then return nil, message, code end
  return byte, ids
end

local Characters = Class:extend("Characters")

function Characters:init(list)
  self.list, self.vocab, self.id = list, #list, {}
  for i, c in ipairs(list) do self.id[c] = i end
end

function Characters:encode(text)
  local ids = {}
  if not utf8.len(check_text(text)) then raise("EVALUE", "data.text", "encode: the text is no valid UTF-8") end
  for _, c in utf8.codes(text) do
    local id = self.id[c]
    if not id then
      raise("EVALUE", "data.text", ('the character "%s" is not in the vocabulary'):format(core.escape(utf8.char(c))))
    end
    ids[#ids + 1] = id
  end
  return ampl.tensor(ids, {dtype = "i32"})
end

function Characters:decode(ids)
  return decoded(ids, self.vocab, function(id) return utf8.char(self.list[id]) end)
end

-- The characters that occur, in the order of their code points.
function tokenizers.char(path)
  local codes, message, code = core.characters_load(path)
  if not codes then
    return nil, code == "EFORMAT" and message .. ': take tokenizer = "byte"' or message, code
  end
  local found = ampl.unique(codes)
  local id_of = ampl.zeros(0x110000, {dtype = "i32"})
  id_of:index_put_({found + 1}, ampl.arange(1, #found + 1, {dtype = "i32"}))
  return Characters(found:totable()), id_of:index_select(1, codes + 1)
end

local function check_tokenizer(t)
  if type(t) == "string" then
    if tokenizers[t] then return end
    raise("EARG", "data.text", ('tokenizer %s; known are "byte", "char", or an object'):format(args.shown(t)))
  end
  if type(t) ~= "table" or not t.encode or math.type(t.vocab) ~= "integer" then
    raise("EARG", "data.text", 'tokenizer must be "byte", "char", or an object with vocab, encode(text), decode(ids)')
  end
end

-- The ids of a file by an object of the user's.
local function encode(path, tokenizer)
  local bytes, message, code = core.bytes_load(path)
  if not bytes then return nil, message, code end
  local ids = tokenizer:encode(bytes:tobytes())
  if type(ids) == "string" then return tokenizer, ampl.from_bytes(ids, {#ids}, {dtype = "u8"}) end
  if type(ids) == "table" then return tokenizer, ampl.tensor(ids, {dtype = "i32"}) end
  if core.is_tensor(ids) and ids.ndim == 1 then return tokenizer, ids end
  raise("EVALUE", "data.text", ("the tokenizer's encode gave %s, not a list of ids"):format(args.shown(ids)))
end

function Text:init(ids, tokenizer, seq_len, stride)
  self.tokenizer, self.vocab, self.seq_len = tokenizer, tokenizer.vocab, seq_len
  self.raw = ids.dtype == "u8"          -- bytes as they are: an eighth of the memory of ids
  self.tokens = ids
  if #ids <= seq_len then
    raise("EVALUE", "data.text",
          ("%d tokens are too few for seq_len = %d, which needs one more"):format(#ids, seq_len))
  end
  self.windows = ids:unfold(1, seq_len + 1, stride)
end

function Text:__tostring()
  return ("Text(%d windows of %d tokens, vocab = %d)"):format(#self, self.seq_len, self.vocab)
end

function Text:__len() return #self.windows end

---@param ids integer[]|ampl.Tensor
---@return string
function Text:decode(ids)
  if core.is_tensor(ids) then ids = ids:flatten():totable() end
  if type(ids) ~= "table" then raise("EARG", "data.text", "decode takes a list of ids, not " .. args.shown(ids)) end
  return self.tokenizer:decode(ids)
end

-- Input and target of a block of windows.
local function split(self, w)
  w = w:to("i64")
  if self.raw then w = w + 1 end
  return w:narrow(-1, 1, self.seq_len):contiguous(), w:narrow(-1, 2, self.seq_len):contiguous()
end

---@param i integer
---@return ampl.Tensor x
---@return ampl.Tensor y
function Text:get(i) return split(self, self.windows[row("Text", i, #self)]) end

---@param positions ampl.Tensor
---@return ampl.Tensor x
---@return ampl.Tensor y
function Text:get_batch(positions) return split(self, self.windows:index_select(1, positions)) end

---Options: seq_len (128); stride, from the start of a window to the next (seq_len); tokenizer: "byte" (256 ids:
---byte + 1), "char" (the characters that occur, by code point), or an object with vocab, encode(text) and decode(ids),
---ids from 1.
---@param path string
---@param options? table
---@return ampl.data.Text? dataset
---@return string? message when the file cannot be read
---@return string? code
return function(path, options)
  local o = signature(path, options)
  for _, name in ipairs {"seq_len", "stride"} do
    if o[name] and o[name] < 1 then
      raise("EVALUE", "data.text", ("%s = %d; it must be 1 or more"):format(name, o[name]))
    end
  end
  check_tokenizer(o.tokenizer)
  local tokenizer, ids, code = (tokenizers[o.tokenizer] or encode)(o.path, o.tokenizer)
  if not tokenizer then return nil, ids, code end
  return Text(ids, tokenizer, o.seq_len, o.stride or o.seq_len)
end
