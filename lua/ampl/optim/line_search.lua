-- A line search for the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6),
-- with cubic interpolation.
--
-- A point of the line is {t = how far, f = the loss, g = the gradient, slope = g along the line}.

local DECREASE, CURVATURE, MOST = 1e-4, 0.9, 25

-- The minimum of the cubic through two points, between low and high (by default the points).
local function cubic(a, b, low, high)
  if not low then low, high = math.min(a.t, b.t), math.max(a.t, b.t) end
  local left, right = a, b
  if a.t > b.t then left, right = b, a end
  local d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
  local square = d1 * d1 - a.slope * b.slope
  if square < 0 then return (low + high) / 2 end
  local d2 = math.sqrt(square)
  local t = right.t - (right.t - left.t) * (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
  return math.min(math.max(t, low), high)
end

-- Walks out until two points enclose what is looked for: both, or one that will do.
local function bracket(evaluate, start, point)
  local before, n = start, 0
  while n < MOST do
    if point.f > start.f + DECREASE * point.t * start.slope or (n > 1 and point.f >= before.f) then
      return n, before, point
    end
    if math.abs(point.slope) <= -CURVATURE * start.slope then return n, point end
    if point.slope >= 0 then return n, before, point end
    local t = cubic(before, point, point.t + 0.01 * (point.t - before.t), 10 * point.t)
    before, point = point, evaluate(t)
    n = n + 1
  end
  return n, start, point
end

-- Where to look next between two points; `stuck`: the last place was near an end, too.
local function inside(a, b, stuck)
  local low, high = math.min(a.t, b.t), math.max(a.t, b.t)
  local t, margin = cubic(a, b), 0.1 * (high - low)
  if math.min(high - t, t - low) >= margin then return t, false end
  if not stuck and t < high and t > low then return t, true end
  return math.abs(t - high) < math.abs(t - low) and high - margin or low + margin, false
end

---Finds a step along a line.
---@param evaluate fun(t: number): table the point at t
---@param start table the point at 0
---@param t number the first step
---@param width number the largest component of the direction
---@param tolerance number the smallest change worth a step
---@return table point
---@return integer evaluations
return function(evaluate, start, t, width, tolerance)
  local evaluations = 0
  local function counted(at)
    evaluations = evaluations + 1
    return evaluate(at)
  end
  local n, a, b = bracket(counted, start, counted(t))
  if not b then return a, evaluations end
  local stuck = false
  local function lower() return a.f <= b.f and a or b end
  while n < MOST and math.abs(b.t - a.t) * width >= tolerance do
    local low, at, near = lower(), inside(a, b, stuck)
    stuck = near
    local point = counted(at)
    n = n + 1
    if point.f > start.f + DECREASE * point.t * start.slope or point.f >= low.f then
      if low == a then b = point else a = point end
    else
      if math.abs(point.slope) <= -CURVATURE * start.slope then return point, evaluations end
      local high = low == a and b or a
      if point.slope * (high.t - low.t) >= 0 then high = low end
      if low == a then a, b = point, high else a, b = high, point end
    end
  end
  return lower(), evaluations
end
