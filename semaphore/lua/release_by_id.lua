-- release_by_id.lua: gives back permits of which a caller has the ids, all or none, whichever
-- process got them. Run twice it leaves the same state; the reply of the second run is 0. It is
-- not refused for want of memory.
--
-- KEYS[1], KEYS[2]  see permits.lua
-- ARGV[1]  channel of the semaphore
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  for how many ms from now the semaphore is to be kept at least; 0: it has no end
-- ARGV[4]  and all that follow: the ids
-- Returns  1, or 0 if one of the permits has expired or is gone, or the semaphore is
--          WRONGTYPE error: nothing was changed
-- Publishes how many permits are free, if some are and some were given back.
-- include refused, integer, clock, int, expiries
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return (refused(value))
elseif value and not integer(value) then
  return (refused({err = 'not an integer'}, ': the number of free permits is not an integer'))
end
local gone = not value and 0 or missing(KEYS[2], 4, #ARGV)
if gone then
  return gone
end
for i = 4, #ARGV do
  redis.call('ZREM', KEYS[2], ARGV[i])
end
value = redis.call('INCRBY', KEYS[1], #ARGV - 3)
if ARGV[3] ~= '0' and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
if value > 0 then
  redis.call(ARGV[2], ARGV[1], int(value))
end
return 1
