-- try_set.lua: sets a latch that is open. Run twice with the same arguments it gives the same
-- state and reply: the request is remembered, if it set the latch.
--
-- KEYS[1]  the latch: integer, no TTL; made if it is not there
-- KEYS[2]  the request; expires
-- ARGV[1]  channel of the latch
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  for how long the request is remembered from this run on, in ms
-- ARGV[4]  the count
-- Returns  1 if this request set it, else 0
--          WRONGTYPE error: nothing was changed
-- Publishes 1 if the latch was set: it closes those of Redisson.
-- include latch
local request = redis.pcall('GET', KEYS[2])
if type(request) == 'table' then
  return (refused(request))
elseif request then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  return 1
elseif value then
  return 0
end
redis.call('SET', KEYS[1], ARGV[4])
redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
redis.call(ARGV[2], ARGV[1], '1')
return 1
