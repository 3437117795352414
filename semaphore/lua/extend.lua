-- extend.lua: gives the n permits of an owner a new expiry. Run twice it sets the same
-- one, counted from the later run.
--
-- KEYS[1]  the free permits: integer
-- KEYS[2]  the taken permits: sorted set, permit id -> expiry in ms since 1970
-- ARGV[1]  owner; its permits are '<owner>:1' to '<owner>:<n>'
-- ARGV[2]  n
-- ARGV[3]  lease in ms, from now
-- ARGV[4]  1: the expiry may also move closer; 0: only further away
-- Returns  1, or 0 if one of the permits has expired or is gone, or the semaphore is
-- Publishes nothing.
local n = tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if type(redis.pcall('GET', KEYS[1])) ~= 'string' then
  return 0
end
local least = tonumber(ARGV[4]) == 1 and 0 or now + tonumber(ARGV[3]) + 1
local expiries = {}
for i = 1, n do
  -- An error (another type stands there now) is a table, and no number.
  expiries[i] = tonumber(redis.pcall('ZSCORE', KEYS[2], ARGV[1] .. ':' .. i) or 0) or 0
  if expiries[i] <= now then
    return 0
  end
end
for i = 1, n do
  if least == 0 or expiries[i] < least then
    -- A millisecond more, since now is cut to whole ones.
    redis.call('ZADD', KEYS[2], string.format('%.0f', now + tonumber(ARGV[3]) + 1), ARGV[1] .. ':' .. i)
  end
end
return 1
