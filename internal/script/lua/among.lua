-- among reports whether one of the owners is in ARGV, from first on.
local function among(owners, first)
  local named = {}
  for i = first, #ARGV do
    named[ARGV[i]] = true
  end
  for _, owner in ipairs(owners) do
    if named[owner] then
      return true
    end
  end
  return false
end
