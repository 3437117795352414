-- count.lua: the value of a counter. Read-only.
--
-- KEYS[1]  the counter: integer
-- KEYS[2]  '{NAME}:timeout': it exists while permits of a Semaphore of that name are taken
-- Returns  the value in decimal digits; '0' if the counter does not exist
--          WRONGTYPE error
-- Publishes nothing.
-- include refused, integer
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return (refused(value))
elseif redis.call('EXISTS', KEYS[2]) == 1 then
  return (refused({err = 'not an integer'}, ': permits of a Semaphore of this name are taken'))
elseif value and not integer(value) then
  return (refused({err = 'not an integer'}, ': the counter is not an integer'))
end
return value or '0'
