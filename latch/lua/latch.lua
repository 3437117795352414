-- latch.lua: not a script of its own, but how the scripts of a latch begin: value is what it holds;
-- false for a latch that is open.
--
-- KEYS[1]  the latch: integer, no TTL
-- include refused
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return (refused(value))
elseif value and not string.match(value, '^-?%d+$') then
  return (refused({err = 'not an integer'}, ': the latch is not an integer'))
end
