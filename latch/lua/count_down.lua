-- count_down.lua: takes one from a latch, and opens it at 0. Run twice with the same arguments
-- it gives the same state: the request is remembered, if it has taken one.
--
-- KEYS[1]  the latch: integer, no TTL; deleted when it reaches 0
-- KEYS[2]  the request: '1'; expires
-- ARGV[1]  channel of the latch
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  for how long the request is remembered from this run on, in ms
-- Returns  changed: 1, or 0 if an earlier run has done it or the latch is open
--          WRONGTYPE error: nothing was changed
-- Publishes 0 if the latch has reached 0.
-- include latch
local request = redis.pcall('GET', KEYS[2])
if type(request) == 'table' then
  return (refused(request))
elseif request then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  return 0
elseif not value then
  return 0
end
local left = redis.call('DECRBY', KEYS[1], 1)
if left <= 0 then
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[2], ARGV[1], '0')
end
redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
return 1
