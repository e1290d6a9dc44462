-- Samples of copies, and of the ops that make tensors.

local ampl = require "ampl"

local function made(f) return {args = f, grad = false} end
local function like(...)
  local more = ...
  return {{args = function(make) return make({3, 4}, {grad = false}), more end, grad = false}}
end
local function writes(f, gradgrad) return {args = f, gradgrad = gradgrad} end

return {
  clone = {{args = function(make) return make({3, 4}) end}, {args = function(make) return make({2, 3, 4, 5}) end}},
  copy = {
    writes(function(make) return make({3, 4}), make({3, 4}) end),
    writes(function(make) return make({3, 4}), make({4}) end),
  },
  fill = {
    writes(function(make) return make({3, 4}), 2.5 end, false),
    writes(function(make) return make({3, 4}), make({}) end),
  },
  zero = {writes(function(make) return make({3, 4}) end, false)},

  zeros = {made(function() return 2, 3 end), made(function() return {}, {dtype = "i64"} end)},
  ones = {made(function() return {2, 3}, {dtype = "bf16"} end)},
  empty = {made(function() return {0, 3} end)},
  full = {made(function() return {2, 3}, 1.5 end), made(function() return {2}, 7, {dtype = "u8"} end)},
  zeros_like = like(), ones_like = like(), full_like = like(2.5),
  empty_like = {made(function() return ampl.zeros(0, 2) end)},
  arange = {
    made(function() return 5 end), made(function() return 1, 2, 0.25 end), made(function() return 5, -1, -2 end),
  },
  linspace = {made(function() return -1, 1, 9 end), made(function() return 0, 1, 1 end)},
  eye = {made(function() return 3 end), made(function() return 2, 4, {dtype = "i64"} end)},

  rand = {made(function() return 3, 50 end)},
  randn = {made(function() return {3, 50} end)},
  rand_like = like(), randn_like = like(),
  randint = {made(function() return -3, 4, {60} end)},
  randperm = {made(function() return 33 end)},
  bernoulli = {{args = function(make) return make({4, 40}, {lo = 0.125, hi = 0.875}) end, grad = false}},
}
