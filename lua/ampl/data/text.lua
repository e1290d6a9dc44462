-- Text as a data set of windows: x is seq_len token ids, y the same one place later.

local Class = require "ampl.class"
local args = require "ampl.args"
local raise = require "ampl.raise"
local ampl = require "ampl"

local signature = args.signature("text", {
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

-- Each tokenizer: encode(text) -> an integer tensor of ids from 1, or a string whose bytes are the ids less one.
local tokenizers = {}

function tokenizers.byte()
  return {
    vocab = 256,
    encode = function(_, text) return text end,
    decode = function(_, ids)
      local bytes = {}
      for i, id in ipairs(ids) do bytes[i] = string.char(id - 1) end
      return table.concat(bytes)
    end,
  }
end

-- The characters that occur, in the order of their code points.
function tokenizers.char(text)
  if not utf8.len(text) then return nil, "it is no valid UTF-8: take tokenizer = \"byte\"" end
  local seen, list = {}, {}
  for _, c in utf8.codes(text) do
    if not seen[c] then
      seen[c] = true
      list[#list + 1] = c
    end
  end
  table.sort(list)
  for i, c in ipairs(list) do seen[c] = i end
  return {
    vocab = #list,
    encode = function(_, s)
      local ids = {}
      for _, c in utf8.codes(s) do
        if not seen[c] then
          raise("EVALUE", "text", ("the character %q is not in the vocabulary"):format(utf8.char(c)))
        end
        ids[#ids + 1] = seen[c]
      end
      return ampl.tensor(ids, {dtype = "i32"})
    end,
    decode = function(_, ids)
      local out = {}
      for i, id in ipairs(ids) do out[i] = utf8.char(list[id]) end
      return table.concat(out)
    end,
  }
end

function Text:init(text, tokenizer, seq_len, stride)
  self.tokenizer, self.vocab, self.seq_len = tokenizer, tokenizer.vocab, seq_len
  local ids = tokenizer:encode(text)
  self.raw = type(ids) == "string"      -- bytes as they are: an eighth of the memory of ids
  if self.raw then
    ids = ampl.from_bytes(ids, {#ids}, {dtype = "u8"})
  elseif type(ids) == "table" then
    ids = ampl.tensor(ids, {dtype = "i32"})
  end
  self.tokens = ids
  if #ids <= seq_len then
    raise("EVALUE", "text", ("%d tokens are too few for seq_len = %d, which needs one more"):format(#ids, seq_len))
  end
  self.windows = ids:unfold(1, seq_len + 1, stride)
end

function Text:__len() return #self.windows end

---@param ids integer[]|ampl.Tensor
---@return string
function Text:decode(ids)
  return self.tokenizer:decode(type(ids) == "userdata" and ids:totable() or ids)
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
function Text:get(i) return split(self, self.windows[i]) end

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
  if o.seq_len < 1 then raise("EVALUE", "text", ("seq_len = %d; it must be 1 or more"):format(o.seq_len)) end
  if o.stride and o.stride < 1 then raise("EVALUE", "text", ("stride = %d; it must be 1 or more"):format(o.stride)) end
  local file, why = io.open(o.path, "rb")
  if not file then return nil, why, "EIO" end
  local text, reason = file:read("a")
  file:close()
  if not text then return nil, reason, "EIO" end
  local tokenizer = o.tokenizer
  if type(tokenizer) == "string" then
    if not tokenizers[tokenizer] then
      raise("EARG", "text", ("tokenizer %q; known are \"byte\", \"char\", or an object"):format(tokenizer))
    end
    tokenizer, why = tokenizers[tokenizer](text)
    if not tokenizer then return nil, o.path .. ": " .. why, "EFORMAT" end
  end
  return Text(text, tokenizer, o.seq_len, o.stride or o.seq_len)
end
