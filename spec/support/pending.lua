-- Why a test does not run: the one list of reasons, which the run's output shows.  A spec says
--   pending(reason("data"))  or, with what is meant,  pending(reason("no_op", name))

local reasons = {
  corner = "an odd corner of PyTorch that is not followed",
  data = "a data set is not there (AMPL_DATA gives its folder)",
  golden = "reference numbers are not there (AMPL_GOLDEN gives their folder)",
  locale = "no locale with a decimal comma is installed",
  no_form = "a trace's data or weights are given in a form that this spec does not read",
  no_model = "a model or layer that ampl does not have",
  no_null = "ampl-null.so is not beside libampl",
  no_op = "an op that ampl does not have",
  tmux = "tmux is not installed",
}

---@param key string
---@param about? string what is missing, or which case it is
---@return string
return function(key, about)
  local text = assert(reasons[key], "no reason of that name: " .. tostring(key))
  return about and ("%s: %s"):format(text, about) or text
end
