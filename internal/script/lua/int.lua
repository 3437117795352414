-- int writes a number as an integer; not every Lua does so by itself when it is large.
local function int(n) return string.format('%.0f', n) end
