-- latch.lua: not a script of its own, but how the scripts of a latch begin.
--
-- KEYS[1]  the latch: integer, no TTL
--
-- value is what it holds; nil, or false, for a latch that is open.
-- include refused
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return (refused(value))
elseif value and not string.match(value, '^-?%d+$') then
  return (refused({err = 'not an integer'}, ': the latch is not an integer'))
end
