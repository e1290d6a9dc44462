-- Hands out a data set in batches: `for x, y in loader do ... end`.
--
-- The order of an epoch depends on the loader's seed and the number of the epoch alone, so a loader is resumed from
-- three numbers, and shuffling takes nothing from the random stream of the program.

local Class = require "ampl.class"
local raise = require "ampl.raise"
local args = require "ampl.args"
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
  local o = options(dataset, ...)
  if type(dataset) ~= "table" or type(dataset.get) ~= "function" and type(dataset.get_batch) ~= "function" then
    raise("EARG", "DataLoader", "a data set is a table with __len and get(i)")
  end
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
  self.seed = o.seed
  if o.shuffle and not o.seed then self.seed = ampl.randint(0, 0x7fffffff, {1}, {dtype = "i64"}):item() end
  self.epoch, self.position = 1, 0      -- position: batches of this epoch handed out so far
end

---Number of batches in an epoch.
function DataLoader:__len()
  local n = self:samples()
  return self.drop_last and n // self.batch_size or (n + self.batch_size - 1) // self.batch_size
end

---Number of samples in an epoch.
---@return integer
function DataLoader:samples()
  local s = self.sampler
  if s == nil then return #self.dataset end
  return type(s) == "function" and #self:epoch_order() or #s
end

-- A list or tensor of positions as an i64 tensor.
local function positions(list)
  if type(list) == "userdata" then return list:to("i64") end
  if type(list) ~= "table" then
    raise("EARG", "DataLoader", ("sampler gave a %s, not a list of positions"):format(type(list)))
  end
  return ampl.tensor(list, {dtype = "i64"})
end

---The positions of this epoch, as an i64 tensor; nil: 1, 2, 3 ...
function DataLoader:epoch_order()
  if self.order then return self.order end
  if self.shuffle then
    local n, key = #self.dataset, self.seed ~ (self.epoch * 0x9E3779B97F4A7C15)
    self.order = ampl.fork_rng(function()
      ampl.manual_seed(key)
      return ampl.randperm(n)
    end)
  elseif self.sampler ~= nil then
    local s = self.sampler
    self.order = positions(type(s) == "function" and s(self.epoch) or s)
  end
  if self.order and self.order.keep then self.order:keep() end         -- outlives a scope that is open now
  return self.order
end

-- One value per field of the samples: tensors are stacked, numbers become a tensor, anything else a list.
local function collate(samples)
  local out = {}
  for k, first in ipairs(samples[1]) do
    local list = {}
    for i, s in ipairs(samples) do list[i] = s[k] end
    if type(first) == "userdata" then
      list = ampl.stack(list, 1)
    elseif type(first) == "number" or type(first) == "boolean" then
      list = ampl.tensor(list)
    end
    out[k] = list
  end
  return table.unpack(out)
end

-- The batch of samples first .. last of this epoch.
function DataLoader:batch(first, last)
  local order, dataset = self:epoch_order(), self.dataset
  if dataset.get_batch and not self.collate then
    local at = order and order:narrow(1, first, last - first + 1) or ampl.arange(first, last + 1, {dtype = "i64"})
    return dataset:get_batch(at)
  end
  local at, samples = order and order:narrow(1, first, last - first + 1):totable(), {}
  for i = first, last do
    local which = at and at[i - first + 1] or i
    local sample = {dataset:get(which)}
    if sample[1] == nil then                            -- nil would end the loop over the loader in silence
      raise("EVALUE", "DataLoader", ("the data set's get(%s) gave nil"):format(tostring(which)))
    end
    samples[i - first + 1] = sample
  end
  return (self.collate or collate)(samples)
end

-- The next batch; nothing at the end of the epoch.
function DataLoader:next()
  if self.position >= #self then
    self.epoch, self.position, self.order = self.epoch + 1, 0, nil
    return nil
  end
  self.position = self.position + 1
  local first = (self.position - 1) * self.batch_size + 1
  return self:batch(first, math.min(first + self.batch_size - 1, self:samples()))
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
  if control == nil then self:start() end
  return self:next()
end

---Where the loader is: what load_state_dict takes to go on with the very next batch.
---@return table
function DataLoader:state_dict()
  local s = {epoch = self.epoch, position = self.position, seed = self.seed}
  if type(self.sampler) == "function" and self.position > 0 then s.order = self.order end
  return s
end

---@param s table of state_dict
function DataLoader:load_state_dict(s)
  if type(s) ~= "table" or not math.tointeger(s.epoch) or not math.tointeger(s.position) then
    raise("EARG", "DataLoader", "load_state_dict takes what state_dict returned: {epoch, position, seed}")
  end
  self.epoch, self.position = math.tointeger(s.epoch), math.tointeger(s.position)
  self.seed = s.seed and math.tointeger(s.seed) or self.seed
  self.order, self.resumed = s.order, true
end

return DataLoader
