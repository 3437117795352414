-- count_down.lua: takes one from a latch, and opens it at 0: it is deleted.
-- KEYS[1], KEYS[2], ARGV[1] to ARGV[3] see request.lua
-- Returns changed: 1, or 0 if an earlier run has done it or the latch is open
-- Publishes 0 if the latch has reached 0.
-- include request
if earlier or not value then return 0 end
if redis.call('DECRBY', KEYS[1], 1) <= 0 then
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[2], ARGV[1], '0')
end
redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
return 1
