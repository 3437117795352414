-- release_by_id.lua: gives back permits by their ids, all or none. The reply of a second run is 0.
-- KEYS[1], KEYS[2] see permits.lua  KEYS[3] with ARGV[5]: the line
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] see keep.lua  ARGV[4] counts
-- ARGV[5] what makes a session's channel of its id; '': there is no line  ARGV[6] and more: the ids
-- Returns 1, or 0 if one of the permits has expired or is gone, or the semaphore is
-- Publishes the messages of line.lua; and how many permits are free, if some are.
local LINE = ARGV[5] ~= '' and KEYS[3]
-- include value, expiries, each, keep, serve
local gone = not value and 0 or missing(KEYS[2], 6, #ARGV)
if gone then return gone end
each('ZREM', KEYS[2], '', 6, #ARGV)
value = redis.call('INCRBY', KEYS[1], #ARGV - 5)
if ARGV[3] ~= '0' and redis.pcall('EXISTS', KEYS[2]) == 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end -- see release.lua
outlast(KEYS[1], KEYS[2], ARGV[3])
value = let_in(value, math.huge, {channel = ARGV[1], publish = ARGV[2], counts = ARGV[4], prefix = ARGV[5]})
if value > 0 then redis.call(ARGV[2], ARGV[1], int(value)) end
return 1
