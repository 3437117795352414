-- release_by_id.lua: ends holds that acquire_by_id.lua gave, and takes back acquisitions
-- whose outcome is unknown; the lock is free when nobody holds it any more.
--
-- What has ended already, or belongs to an earlier life of the lock, is not released
-- again: run twice with the same arguments it leaves the same state and the same
-- holds. Only `changed` tells the runs apart.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted when no hold is left
-- KEYS[2]  the ids of the holds that were taken by id: set
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  the holds that this session keeps
-- ARGV[5]  the TTL in ms that those deserve; 0 leaves it
-- ARGV[i]  i > 5: ids of the holds to end
-- Returns  {holds left, changed}; changed is 0 if none of the ids was there
-- Publishes '0' on the channel when the lock became free.
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
  return {0, 0} -- something else stands under the name: the holds are gone
end
held = tonumber(held or 0) or 0
if held <= 0 then
  return {0, 0} -- the ids, if they are still there, speak of an earlier life
end
local ended = 0
for i = 6, #ARGV do
  ended = ended + redis.call('SREM', KEYS[2], ARGV[i])
end
if ended == 0 then
  return {held, 0}
end
if held <= ended then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call(ARGV[3], ARGV[2], '0')
  return {0, 1}
end
held = redis.call('HINCRBY', KEYS[1], ARGV[1], -ended)
-- Only ever shorter: unlocking one hold never lengthens the lease of another. And only
-- if no other session holds under the same owner.
local ttl = tonumber(ARGV[5])
if ttl > 0 and held <= tonumber(ARGV[4]) and redis.call('PTTL', KEYS[1]) > ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return {held, 1}
