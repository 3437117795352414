-- integer reports whether a value is a whole number that Redis can count with here.
local function integer(value)
  return (value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18
end
