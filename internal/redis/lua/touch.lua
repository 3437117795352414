-- touch.lua: writes a key as it is, so that WAIT has a write to wait for on this very connection.
-- KEYS[1] a lock, or another key that says who holds one
-- Returns 1, or 0 if it is not there
local ttl = redis.call('PTTL', KEYS[1])
if ttl == -2 then return 0 end
if ttl == -1 then
  redis.call('INCRBY', KEYS[1], 0) -- only a semaphore may have no end, and its key is a number
else
  redis.call('PEXPIRE', KEYS[1], math.max(ttl, 1))
end
return 1
