-- What the watchdog of Redisson does for a lock of which it renews one hold, by its documented steps.
-- KEYS: the lock
-- ARGV: lease in ms, owner
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('pexpire', KEYS[1], ARGV[1])
return 1
