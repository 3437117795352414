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
-- ARGV[6]  how many holds to end
-- ARGV[i]  i > 6: the ids of those; then the ids of the holds of ARGV[4], but for the one
--          that acquire.lua gave; needed only with a TTL
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
local kept = 7 + ARGV[6]
for i = 7, kept - 1 do
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
-- if all that is left is this session's: see extend.lua.
local ttl = tonumber(ARGV[5])
if ttl <= 0 or held ~= tonumber(ARGV[4]) or redis.call('PTTL', KEYS[1]) <= ttl then
  return {held, 1}
end
for i = kept, #ARGV do
  if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    return {held, 1}
  end
end
if held > #ARGV - kept + 1 and redis.call('SISMEMBER', KEYS[2], 'entered:' .. ARGV[1]) == 1 then
  return {held, 1} -- acquire.lua's hold was of an earlier life
end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
return {held, 1}
