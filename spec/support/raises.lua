-- What a wrong call must do: raise an error object of this code whose message holds every one of the texts.

---@param code string
---@param texts string[] plain text, no patterns
---@param f function called with the rest
---@return table e the error object
return function(code, texts, f, ...)
  assert(#texts > 0, "the text is a part of the contract: say what it holds")
  local ok, e = pcall(f, ...)
  assert(not ok, "nothing was raised")
  assert(type(e) == "table", "no error object: " .. tostring(e))
  assert(e.code == code, ("%s, expected %s: %s"):format(e.code, code, e.message))
  for _, text in ipairs(texts) do
    assert(e.message:find(text, 1, true), ("%q should say %q"):format(e.message, text))
  end
  return e
end
