-- The look at a counter that its scripts have in common: no script of its own.
--
-- value is what the counter at KEYS[1] has, false if it does not exist. KEYS[2] is there while permits
-- of a Semaphore of the same name are taken.
-- include refused, integer
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return (refused(value))
elseif redis.call('EXISTS', KEYS[2]) == 1 then
  return (refused({err = 'not an integer'}, ': permits of a Semaphore of this name are taken'))
elseif value and not integer(value) then
  return (refused({err = 'not an integer'}, ': the counter is not an integer'))
end
