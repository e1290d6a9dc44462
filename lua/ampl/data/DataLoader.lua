-- Hands out a data set in batches: `for x, y in loader do ... end`.
--
-- The order of an epoch depends on the loader's seed and the number of the epoch alone, so a loader is resumed from
-- three numbers, and shuffling takes nothing from the random stream of the program.

local Class = require "ampl.class"
local raise = require "ampl.raise"
local args = require "ampl.args"
local core = require "ampl.core"
local ampl = require "ampl"

local options = args.signature("DataLoader", {
  {"dataset", "any"},
  {"batch_size", "integer", 1},
  {"shuffle", "boolean", false},
  {"drop_last", "boolean", false},
  {"workers", "integer", 0},
  {"seed", "integer?"},
  {"sampler", "any?"},
  {"collate", "function?"},
})

-- Raises unless there is what the loader will ask of a data set.
local function check_dataset(dataset)
  if type(dataset) ~= "table" or not (dataset.get or dataset.get_batch) then
    raise("EARG", "DataLoader", "dataset must be a table with __len and get(i), not " .. args.shown(dataset))
  end
  local mt = getmetatable(dataset)
  if mt == nil or type(mt) == "table" and not mt.__len then
    raise("EARG", "DataLoader", "the data set's metatable has no __len, which gives the number of samples")
  end
end

-- The positions in a list or tensor, of a data set of n samples, as an i64 tensor.
local function positions(list, n)
  if core.is_tensor(list) then
    if list.ndim ~= 1 then
      raise("ESHAPE", "DataLoader", ("sampler: the tensor of positions has %d dimensions, not 1"):format(list.ndim))
    end
    list = list:totable()
  end
  if type(list) ~= "table" then
    raise("EARG", "DataLoader", "sampler must give a list of positions, not " .. args.shown(list))
  end
  local out = {}
  for i = 1, #list do
    local at = math.type(list[i]) and math.tointeger(list[i])
    if not at then
      raise("EARG", "DataLoader", ("sampler: entry %d is %s, not a position"):format(i, args.shown(list[i])))
    end
    if at < 1 or at > n then
      raise("EINDEX", "DataLoader", ("sampler: entry %d is position %d; the data set has 1 to %d"):format(i, at, n))
    end
    out[i] = at
  end
  return ampl.tensor(out, {dtype = "i64"}):keep()
end

---@class ampl.data.DataLoader : ampl.Class
---@field dataset table
---@field batch_size integer
---@operator len: integer
---@overload fun(dataset: table, options?: table): ampl.data.DataLoader
local DataLoader = Class:extend("DataLoader")

---Options: batch_size (1), shuffle, drop_last (leave out a last batch that is not full), seed (of shuffling; without
---one it is drawn from the program's stream when the loader is made), sampler (a list or integer tensor of positions,
---or a function(epoch) that returns one; instead of shuffle), collate (function(list of {x, y}) that returns the
---batch), workers (0: batches are made by the calling thread).
---@param dataset table
function DataLoader:init(dataset, ...)
  local named = type(dataset) == "table" and dataset.dataset ~= nil
  local o = (select("#", ...) > 0 or named) and options(dataset, ...) or options(dataset, {})   -- no table of options
  dataset = o.dataset
  check_dataset(dataset)
  if o.batch_size < 1 then
    raise("EVALUE", "DataLoader", ("batch_size = %d; it must be 1 or more"):format(o.batch_size))
  end
  if o.workers ~= 0 then
    raise("EUNSUPPORTED", "DataLoader", "workers: batches are made by the calling thread; leave it at 0")
  end
  if o.shuffle and o.sampler then
    raise("EARG", "DataLoader", "shuffle and sampler both give the order: leave one out")
  end
  self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, o.batch_size, o.shuffle, o.drop_last
  self.sampler, self.collate = o.sampler, o.collate
  if type(o.sampler) ~= "function" and o.sampler then self.order_given = positions(o.sampler, self:size()) end
  self.seed = o.seed
  if o.shuffle and not o.seed then self.seed = ampl.randint(0, 0x7fffffff, {1}, {dtype = "i64"}):item() end
  self.epoch, self.position = 1, 0      -- position: batches of this epoch handed out so far
  self.handed = setmetatable({}, {__mode = "v"})        -- the last batch's first value
end

-- The number of samples that the data set has.
function DataLoader:size()
  local n = #self.dataset
  local whole = math.type(n) and math.tointeger(n)
  if not whole or whole < 0 then
    raise("EVALUE", "DataLoader", "the data set's __len gave " .. args.shown(n) .. ", not a number of samples")
  end
  return whole
end

---Number of batches in an epoch.
function DataLoader:__len()
  local n = self:samples()
  return self.drop_last and n // self.batch_size or (n > 0 and (n - 1) // self.batch_size + 1 or 0)
end

---Number of samples in an epoch.
---@return integer
function DataLoader:samples()
  return self.sampler == nil and self:size() or #self:epoch_order()
end

function DataLoader:__tostring()
  local mt = getmetatable(self.dataset)
  local text = type(mt) == "table" and mt.__tostring and tostring(self.dataset) or "a data set"
  local order = self.shuffle and ", shuffle = true" or self.sampler and ", a sampler" or ""
  return ("DataLoader(%s, batch_size = %d%s%s)"):format(text, self.batch_size, order,
                                                       self.drop_last and ", drop_last = true" or "")
end

---The positions of this epoch, as an i64 tensor; nil: 1, 2, 3 ...
function DataLoader:epoch_order()
  if self.order then return self.order end
  if self.shuffle then
    local n, key = self:size(), self.seed ~ (self.epoch * 0x9E3779B97F4A7C15)
    self.order = ampl.fork_rng(function()
      ampl.manual_seed(key)
      return ampl.randperm(n)
    end)
  elseif self.sampler ~= nil then
    self.order = self.order_given or positions(self.sampler(self.epoch), self:size())
  end
  if self.order then self.order:keep() end              -- outlives a scope that is open now
  return self.order
end

-- What a value in a sample is: values that cannot be one batch are told apart by it.
local function kind_of(v)
  if core.is_tensor(v) then return "a tensor" end
  local kind = type(v)
  return (kind == "number" or kind == "boolean") and "a " .. kind or "a value"
end

-- Raises unless value k of every sample can stand in one batch with that of the first.
local function check_values(samples, position, k)
  local first = samples[1][k]
  local kind = kind_of(first)
  local shape = kind == "a tensor" and table.concat(first.shape, ", ")
  for i = 2, #samples do
    local v = samples[i][k]
    if kind_of(v) ~= kind then
      raise("EVALUE", "DataLoader", ("value %d of the data set's get(%d) is %s, that of get(%d) %s"):format(
        k, position(i), args.shown(v), position(1), args.shown(first)))
    end
    if shape and table.concat(v.shape, ", ") ~= shape then
      raise("ESHAPE", "DataLoader", (("value %d of the data set's get(%d) has shape {%s}, that of get(%d) {%s}; a " ..
        "batch needs one shape: give a collate function")):format(k, position(i), table.concat(v.shape, ", "),
        position(1), shape))
    end
  end
end

-- One value per field of the samples: tensors are stacked, numbers become a tensor, anything else a list.
local function collate(samples, position, n)
  local out = {}
  for k = 1, n do
    check_values(samples, position, k)
    local list, first = {}, samples[1][k]
    for i, s in ipairs(samples) do list[i] = s[k] end
    if core.is_tensor(first) then
      list = ampl.stack(list, 1)
    elseif type(first) == "number" or type(first) == "boolean" then
      list = ampl.tensor(list)
    end
    out[k] = list
  end
  return table.unpack(out, 1, n)
end

-- How many values a sample has; raises when one of them is missing, for `i`, its position, would be hard to find.
local function arity(sample, i)
  local n = sample.n
  while n > 0 and sample[n] == nil do n = n - 1 end
  if n == 0 then raise("EVALUE", "DataLoader", ("the data set's get(%d) gave nil"):format(i)) end
  for k = 1, n do
    if sample[k] == nil then
      raise("EVALUE", "DataLoader", ("value %d of the data set's get(%d) is nil"):format(k, i))
    end
  end
  return n
end

-- The samples at position(1), ... position(count), and how many values each has.
local function take(dataset, position, count)
  local samples, n = {}, nil
  for i = 1, count do
    local at = position(i)
    local sample = table.pack(dataset:get(at))
    local here = arity(sample, at)
    n = n or here
    if here ~= n then
      raise("EVALUE", "DataLoader", ("the data set's get(%d) gave %d value%s, but get(%d) gave %d"):format(
        at, here, here == 1 and "" or "s", position(1), n))
    end
    sample.n = nil
    samples[i] = sample
  end
  return samples, n
end

-- Hands on what `who` made; nil in the place of its first value would end the loop over the loader in silence.
local function made(who, first, ...)
  if first == nil then raise("EVALUE", "DataLoader", who .. " gave nil, not a batch") end
  return first, ...
end

-- The batch of samples first .. last of this epoch.
function DataLoader:batch(first, last)
  local order, dataset = self:epoch_order(), self.dataset
  if dataset.get_batch and not self.collate then
    local at = order and order:narrow(1, first, last - first + 1) or ampl.arange(first, last + 1, {dtype = "i64"})
    return made("the data set's get_batch", dataset:get_batch(at))
  end
  if not dataset.get then
    raise("EARG", "DataLoader", "collate needs a data set with get(i); this one has get_batch alone")
  end
  local list = order and order:narrow(1, first, last - first + 1):totable()
  local function position(i) return list and list[i] or first + i - 1 end
  local samples, n = take(dataset, position, last - first + 1)
  if self.collate then return made("collate", self.collate(samples)) end
  return collate(samples, position, n)
end

-- Keeps in mind which batch was handed out last.
local function hand_out(self, first, ...)
  self.handed[1] = first
  return first, ...
end

-- The next batch; nothing at the end of the epoch.
function DataLoader:next()
  if self.position >= #self then
    self.epoch, self.position, self.order = self.epoch + 1, 0, nil
    return nil
  end
  self.position = self.position + 1
  local first, n = (self.position - 1) * self.batch_size + 1, self:samples()
  local last = self.batch_size > n - first and n or first + self.batch_size - 1
  return hand_out(self, self:batch(first, last))
end

-- Begins an epoch, or goes on in the one that load_state_dict has set.
function DataLoader:start()
  if self.resumed then
    self.resumed = nil
  elseif self.position > 0 then         -- a loop that was left by break: its epoch is over
    self.epoch, self.position, self.order = self.epoch + 1, 0, nil
  end
end

---`for x, y in loader do`: the loop's first call starts an epoch, the others go on.  `loader()` returns the same as a
---function.
function DataLoader:__call(...)
  if select("#", ...) == 0 then
    self:start()
    return function() return self:next() end
  end
  local _, control = ...
  local handed = self.handed[1]
  if control == nil then
    self:start()
  elseif self.position == 0 or handed ~= nil and control == control and not rawequal(control, handed) then
    raise("ESTATE", "DataLoader", "another loop over this loader has begun within this one: take two loaders")
  end
  return self:next()
end

---Where the loader is: what load_state_dict takes to go on with the very next batch.
---@return table
function DataLoader:state_dict()
  local s = {epoch = self.epoch, position = self.position, seed = self.seed}
  if type(self.sampler) == "function" and self.position > 0 then s.order = self.order end
  return s
end

-- A field of a state as an integer of `least` or more; nil where it may be missing.
local function state_field(s, name, least, optional)
  local v = s[name]
  local whole = math.type(v) and math.tointeger(v)
  if v == nil and optional then return nil end
  if not whole or whole < least then
    raise("EARG", "DataLoader", ("load_state_dict takes what state_dict returned, {epoch, position, seed}: %s is %s"):
      format(name, args.shown(v)))
  end
  return whole
end

---@param s table of state_dict
function DataLoader:load_state_dict(s)
  if type(s) ~= "table" then
    raise("EARG", "DataLoader", "load_state_dict takes what state_dict returned, not " .. args.shown(s))
  end
  local epoch, position = state_field(s, "epoch", 1), state_field(s, "position", 0)
  local seed = state_field(s, "seed", math.mininteger, true)
  local order = s.order ~= nil and positions(s.order, self:size()) or nil
  self.epoch, self.position, self.seed = epoch, position, seed or self.seed
  self.order, self.resumed = order, true
end

return DataLoader
