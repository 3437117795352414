-- try_set.lua: sets a latch that is open.
-- KEYS[1], KEYS[2], ARGV[1] to ARGV[3] see request.lua  ARGV[4] the count
-- Returns 1 if this request set it, else 0
-- Publishes 1 if the latch was set: it closes those of Redisson.
-- include request
if earlier or value then return earlier and 1 or 0 end
redis.call('SET', KEYS[1], ARGV[4])
redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
redis.call(ARGV[2], ARGV[1], '1')
return 1
