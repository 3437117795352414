-- extend_by_id.lua: gives permits a new expiry by their ids, all or none; any session may do so.
-- KEYS[1], KEYS[2] see permits.lua  KEYS[3] the number of this session's last one: integer; expires
-- ARGV[1] lease in ms, from now  ARGV[2] see keep.lua  ARGV[3] the number of this one
-- ARGV[4] for how many ms from this run on that is remembered  ARGV[5] and more: the ids
-- Returns 1; 0: a permit has expired or is gone, or the semaphore is; -1: a later one came before
-- include expiries
local value, last = redis.pcall('GET', KEYS[1]), redis.call('GET', KEYS[3])
if type(value) == 'table' then return (refused(value)) end
if last and tonumber(last) >= tonumber(ARGV[3]) then return last == ARGV[3] and 1 or -1 end
local gone = not value and 0 or missing(KEYS[2], 5, #ARGV)
if gone then return gone end
prolong(KEYS[1], KEYS[2], 5, #ARGV, 'XX', now + 1 + ARGV[1], ARGV[2])
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4])
return 1
