-- masters: f32 weights that an optimiser steps, and the 16-bit ones of a model that stand for them.
--
-- A link joins the two.  Either may be written: the masters by the optimiser or by hand, the model's by
-- load_state_dict, in place, by an assignment to the module's field, by Module:to.  agree() finds by version, or by
-- another tensor in the field, which of them was, and brings the other up to date: an element of the model that was not
-- touched keeps the master's full precision.

local core = require "ampl.core"
local cast = require "ampl.amp.cast"

local masters = {}

---@param master ampl.Tensor what the optimiser has
---@param low ampl.Tensor what the model has; the same, where there is nothing to keep apart
function masters.link(master, low)
  return {master = master, low = low, places = {}, seen_master = master._version, seen_low = low._version}
end

---Remembers that the tensor is field `name` of `module`.
function masters.place(link, module, name) link.places[#link.places + 1] = {module = module, name = name} end

local function seen(link) link.seen_master, link.seen_low = link.master._version, link.low._version end

local function same_shape(a, b) return table.concat(a.shape, ",") == table.concat(b.shape, ",") end

-- Another tensor of the same shape in one of the fields, or nil.
local function replaced(link)
  for _, place in ipairs(link.places) do
    local now = rawget(place.module, place.name)
    if now ~= link.low and core.is_tensor(now) and same_shape(now, link.low) then return now end
  end
end

-- The model goes on with `now`, in 16 bits, as the parameter that it was.
local function take_over(link, now)
  local old = link.low
  local low = now.dtype == old.dtype and now.is_leaf and now or now:detach():to(old.dtype)
  low:requires_grad_(old.requires_grad)
  if low ~= now and now.is_leaf and now.grad then low.grad = now.grad:detach():to(low.dtype) end
  for _, place in ipairs(link.places) do
    local t = rawget(place.module, place.name)
    if t == now or t == old then rawset(place.module, place.name, low) end
  end
  link.low = low:keep()
  link.master:copy_(now:detach())
end

-- What differs from the master in 16 bits was written.
local function take_edits(link)
  local low, master = link.low:detach(), link.master:detach()
  master:copy_(core.where(low:ne(cast(master, low.dtype)), low, master))
end

local function agree(link)
  local now = replaced(link)
  if now then take_over(link, now)
  elseif link.low._version ~= link.seen_low then take_edits(link)
  elseif link.master._version ~= link.seen_master then link.low:copy_(link.master)
  else return end
  seen(link)
end

---Brings masters and model together.
function masters.agree(links)
  local _ <close> = core.enter_grad(false)
  for _, link in ipairs(links) do agree(link) end
end

---The model gets what the optimiser made of the masters.
function masters.hand_on(links)
  local _ <close> = core.enter_grad(false)
  for _, link in ipairs(links) do
    link.low:copy_(link.master)
    seen(link)
  end
end

---Copies what load_state_dict took from `dict` into the masters, in full precision.
---@param named fun(): string?, ampl.Tensor? the model's parameters
function masters.load(links, named, dict)
  local of = {}
  for _, link in ipairs(links) do of[link.low] = link end
  masters.agree(links)
  local _ <close> = core.enter_grad(false)
  for name, tensor in named do
    local link, value = of[tensor], dict[name]
    if link and core.is_tensor(value) and same_shape(value, tensor) then
      link.master:copy_(value:detach())
      seen(link)
    end
  end
end

return masters
