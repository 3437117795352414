-- release_by_id.lua: gives back permits by their ids, all or none. The reply of a second run is 0.
-- KEYS[1], KEYS[2] see permits.lua  ARGV[1] channel  ARGV[2] publish  ARGV[3] see keep.lua
-- ARGV[4] and more: the ids
-- Returns 1, or 0 if one of the permits has expired or is gone, or the semaphore is
-- Publishes how many permits are free, if some are.
-- include value, expiries, each
local gone = not value and 0 or missing(KEYS[2], 4, #ARGV)
if gone then return gone end
each('ZREM', KEYS[2], '', 4, #ARGV)
value = redis.call('INCRBY', KEYS[1], #ARGV - 3)
outlast(KEYS[1], KEYS[2], ARGV[3])
if value > 0 then redis.call(ARGV[2], ARGV[1], int(value)) end
return 1
