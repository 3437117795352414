-- integer reports whether a value is a whole number that Redis can count with here.
local function integer(v) return (v == '0' or string.match(v, '^-?[1-9]%d*$')) and #v <= 18 end
