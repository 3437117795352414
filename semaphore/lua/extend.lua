-- extend.lua: gives the permits of a request a new expiry, counted from the later run of two.
-- KEYS[1], KEYS[2] see permits.lua
-- KEYS[3] void commands: set of 'x<id>'; lives as long as the permits; left out if ARGV[4] is ''
-- ARGV[1] lease in ms, from now  ARGV[2] 1: the expiry may also move closer; 0: only further away
-- ARGV[3] see keep.lua  ARGV[4] the id of this command  ARGV[5] how many permits the request has
-- ARGV[6] and more: their ids; then the ids of commands that are void from now on, if they come late
-- Returns 1, or 0 if one of the permits has expired or is gone, or the semaphore is
-- include expiries, each
local last = 5 + ARGV[5]
if type(redis.pcall('GET', KEYS[1])) ~= 'string' then return 0 end
if KEYS[3] and redis.call('SISMEMBER', KEYS[3], 'x' .. ARGV[4]) == 1 then return 1 end
if missing(KEYS[2], 6, last) then return 0 end
local how = ARGV[2] == '1' and 'XX' or 'GT'
prolong(KEYS[1], KEYS[2], 6, last, how, now + 1 + ARGV[1], ARGV[3])
each('SADD', KEYS[3], 'x', last + 1, #ARGV)
if KEYS[3] then redis.call('PEXPIRE', KEYS[3], ARGV[1]) end
return 1
