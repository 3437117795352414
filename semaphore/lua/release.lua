-- release.lua: gives back the n permits of an owner, all or none.
--
-- Run twice with the same arguments it leaves the same state. Only `changed` tells the
-- runs apart: 0 in a first run means that the permits had expired, or the semaphore was
-- deleted; 0 in a resend means that an earlier run has done it.
--
-- KEYS[1], KEYS[2]  see permits.lua; the free permits are not made anew if they are gone
-- ARGV[1]  owner; its permits are '<owner>:1' to '<owner>:<n>'
-- ARGV[2]  n
-- ARGV[3]  channel of the semaphore
-- ARGV[4]  PUBLISH or SPUBLISH
-- ARGV[5]  1: that tells how many connections have heard it; 0: it counts one node only
-- Returns  {0, changed, receivers}; receivers is how many connections heard of free
--          permits, -1 if that is not known or nothing was published
-- Publishes how many permits are free, if some are.
-- include refused, integer, clock
local owner, n = ARGV[1], tonumber(ARGV[2])
local value, taken = redis.pcall('GET', KEYS[1]), redis.pcall('ZCARD', KEYS[2])
local bad, gone = refused(value)
if not bad then
  bad, gone = refused(taken)
end
if bad and not gone then
  return bad
elseif gone or (value and not integer(value)) then
  return {0, 0, -1} -- something else stands under the name: the permits are gone
end
for i = 1, value and n or 0 do
  local expiry = redis.call('ZSCORE', KEYS[2], owner .. ':' .. i)
  if not expiry or tonumber(expiry) <= now then
    return {0, 0, -1} -- the next script that counts permits gives expired ones back
  end
end
for i = 1, n do
  redis.call('ZREM', KEYS[2], owner .. ':' .. i)
end
if not value then
  return {0, 0, -1} -- it was deleted, and these permits with it
end
value = redis.call('INCRBY', KEYS[1], ARGV[2])
local receivers = value > 0 and redis.call(ARGV[4], ARGV[3], string.format('%.0f', value))
return {0, 1, ARGV[5] == '1' and receivers or -1}
