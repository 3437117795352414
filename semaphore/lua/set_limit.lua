-- set_limit.lua: sets the limit of a semaphore, for everybody. Taken permits stay taken.
-- Run twice with the same arguments it leaves the same state.
--
-- KEYS[1]  the free permits: integer; made if it is not there
-- KEYS[2]  the taken permits: sorted set, permit id -> expiry in ms since 1970
-- ARGV[1]  the limit
-- ARGV[2]  channel of the semaphore
-- ARGV[3]  PUBLISH or SPUBLISH
-- Returns  how many permits are free, below 0 if more are taken than the limit allows
--          WRONGTYPE error: nothing was changed
-- Publishes how many permits are free (0 if below 0), if the limit was changed, so that
--          who waits for more than that learns of it, or if permits had expired.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local function int(n) return string.format('%.0f', n) end
local value, taken = redis.pcall('GET', KEYS[1]), redis.pcall('ZCARD', KEYS[2])
if type(value) == 'table' or type(taken) == 'table' then
  return redis.error_reply(wrongtype)
end
if value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18) then
  return redis.error_reply(wrongtype .. ': the number of free permits is not an integer')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local back = redis.call('ZREMRANGEBYSCORE', KEYS[2], '0', int(now))
local free = tonumber(ARGV[1]) - (taken - back)
if value and back == 0 and free == tonumber(value) then
  return free
end
if value then
  redis.call('INCRBY', KEYS[1], int(free - tonumber(value))) -- keeps a TTL
else
  redis.call('SET', KEYS[1], int(free))
end
redis.call(ARGV[3], ARGV[2], int(math.max(free, 0)))
return free
