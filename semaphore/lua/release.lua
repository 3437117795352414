-- release.lua: gives back the n permits of an owner, all or none.
--
-- Run twice with the same arguments it leaves the same state. Only `changed` tells the
-- runs apart: 0 in a first run means that the permits had expired, or the semaphore was
-- deleted; 0 in a resend means that an earlier run has done it.
--
-- KEYS[1]  the free permits: integer; not made anew if it is gone
-- KEYS[2]  the taken permits: sorted set, permit id -> expiry in ms since 1970
-- ARGV[1]  owner; its permits are '<owner>:1' to '<owner>:<n>'
-- ARGV[2]  n
-- ARGV[3]  channel of the semaphore
-- ARGV[4]  PUBLISH or SPUBLISH
-- Returns  {0, changed}
-- Publishes how many permits are free, if some are.
local value, n = redis.pcall('GET', KEYS[1]), tonumber(ARGV[2])
if type(value) == 'table' or type(redis.pcall('ZCARD', KEYS[2])) == 'table'
    or (value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18)) then
  return {0, 0} -- something else stands under the name: the permits are gone
end
if value then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  for i = 1, n do
    local expiry = redis.call('ZSCORE', KEYS[2], ARGV[1] .. ':' .. i)
    if not expiry or tonumber(expiry) <= now then
      return {0, 0} -- whoever looks for expired permits gives them back
    end
  end
end
for i = 1, n do
  redis.call('ZREM', KEYS[2], ARGV[1] .. ':' .. i)
end
if not value then
  return {0, 0} -- it was deleted, and these permits with it
end
value = redis.call('INCRBY', KEYS[1], ARGV[2])
if value > 0 then
  redis.call(ARGV[4], ARGV[3], string.format('%.0f', value))
end
return {0, 1}
