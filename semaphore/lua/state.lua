-- state.lua: how many permits are free, and what the limit is. Gives back what has
-- expired. Safe to run any number of times.
--
-- KEYS[1]  the free permits: integer
-- KEYS[2]  the taken permits: sorted set, permit id -> expiry in ms since 1970
-- ARGV[1]  the limit, should the semaphore not exist
-- ARGV[2]  channel of the semaphore
-- ARGV[3]  PUBLISH or SPUBLISH
-- Returns  {free, limit}; free is below 0 while more are taken than the limit allows
--          WRONGTYPE error: nothing was changed
-- Publishes how many permits are free, if some are and permits had expired.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local value, taken = redis.pcall('GET', KEYS[1]), redis.pcall('ZCARD', KEYS[2])
if type(value) == 'table' or type(taken) == 'table' then
  return redis.error_reply(wrongtype)
end
if value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18) then
  return redis.error_reply(wrongtype .. ': the number of free permits is not an integer')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local back = redis.call('ZREMRANGEBYSCORE', KEYS[2], '0', string.format('%.0f', now))
taken = taken - back
if not value then
  return {tonumber(ARGV[1]) - taken, tonumber(ARGV[1])}
end
value = tonumber(value)
if back > 0 then
  value = redis.call('INCRBY', KEYS[1], string.format('%.0f', back))
  if value > 0 then
    redis.call(ARGV[3], ARGV[2], string.format('%.0f', value))
  end
end
return {value, value + taken}
