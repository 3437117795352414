-- release_by_id.lua: ends holds that have ids, and takes back acquisitions whose outcome is
-- unknown; the lock is free when the owner has no hold left.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted when no hold is left
-- KEYS[2]  the ids of its holds: set; deleted with it
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  1: that tells how many connections have heard it; 0: it counts one node only
-- ARGV[5]  the TTL in ms that the holds deserve which stay; 0 leaves it
-- ARGV[6]  1: the owner is private: the holds that stay are all of this session
-- ARGV[7]  how many holds to end
-- ARGV[8]  the id of the first of those; the TTL is left if an extension has voided that id
-- ARGV[i]  i > 8: the other ids of those; then, of a named owner and with a TTL, the ids of the
--          holds that this session keeps
-- Returns  {holds left, changed, receivers}; changed is 0 if none of the ids was there
-- Publishes '0' on the channel when the lock became free.
-- include refused, there
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
local bad, gone = refused(held)
held = not bad and tonumber(held or 0) or 0
if bad and not gone then
  return bad
elseif held <= 0 then
  return {0, 0, -1} -- the ids, if they are still there, speak of an earlier life
end
local ended, kept = 0, 8 + ARGV[7]
for i = 8, kept - 1 do
  ended = ended + redis.call('SREM', KEYS[2], ARGV[i])
end
if ended == 0 then
  return {held, 0, -1}
elseif held <= ended then
  redis.call('DEL', KEYS[1], KEYS[2])
  local receivers = redis.call(ARGV[3], ARGV[2], '0')
  return {0, 1, ARGV[4] == '1' and receivers or -1}
end
held = redis.call('HINCRBY', KEYS[1], ARGV[1], -ended)
-- Only ever shorter: unlocking one hold never lengthens the lease of another.
local ttl = tonumber(ARGV[5])
if ttl > 0 and redis.call('PTTL', KEYS[1]) > ttl and redis.call('SISMEMBER', KEYS[2], 'x' .. ARGV[8]) == 0
    and (ARGV[6] == '1' or there(KEYS[2], '', kept, #ARGV) == held) then
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return {held, 1, -1}
