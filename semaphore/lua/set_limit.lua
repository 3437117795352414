-- set_limit.lua: sets the limit of a semaphore, for all sessions. Taken permits stay taken.
-- Run twice with the same arguments it leaves the same state.
--
-- KEYS[1], KEYS[2]  see permits.lua; the free permits are made if they are not there
-- ARGV[1]  the limit
-- ARGV[2]  channel of the semaphore
-- ARGV[3]  PUBLISH or SPUBLISH
-- Returns  how many permits are free, below 0 if more are taken than the limit allows
--          WRONGTYPE error: nothing was changed
-- Publishes how many permits are free (0 if below 0), if the limit was changed, so that
--          waiters for more than that learn of it, or if permits had expired.
-- include permits
local free = ARGV[1] - taken
if value and back == 0 and free == value then
  return free
elseif value then
  redis.call('INCRBY', KEYS[1], int(free - value)) -- keeps a TTL
else
  redis.call('SET', KEYS[1], int(free))
end
redis.call(ARGV[3], ARGV[2], int(math.max(free, 0)))
return free
