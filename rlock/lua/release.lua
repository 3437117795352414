-- release.lua: ends the hold that acquire.lua gave. The lock is free if the owner has no
-- other, by id.
--
-- Run twice with the same arguments it leaves the same state and the same holds. Only
-- `changed` tells the runs apart: 0 in a first run means that the hold was lost
-- before; 0 in a resend means that an earlier run has done it.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted when no hold is left
-- KEYS[2]  the ids of holds that were taken by id: set. Left out where the session
--          knows of none, so that a slot on the move cannot part the keys
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  the holds that this session keeps, all by id
-- ARGV[5]  the TTL in ms that those deserve; 0 leaves it
-- ARGV[i]  i > 5: with a TTL the ids of those; then other owners that may stand there
--          instead, since the lock has passed from them to this one in memory (see
--          transfer.lua)
-- Returns  {holds left, changed}; {holds, 0} without KEYS[2]: nothing was done, since
--          the owner has holds by id, and the call must be made with KEYS[2]
-- Publishes '0' on the channel when the lock became free.
local owner = ARGV[1]
local held = redis.pcall('HGET', KEYS[1], owner)
if type(held) == 'table' then
  return {0, 0} -- something else stands under the name: the hold is gone
end
local ttl = tonumber(ARGV[5])
local kept = ttl > 0 and tonumber(ARGV[4]) or 0
for i = 6 + kept, #ARGV do
  if not held then
    owner = ARGV[i]
    held = redis.call('HGET', KEYS[1], owner)
  end
end
held = tonumber(held or 0) or 0
if held <= 0 then
  return {0, 0}
end
-- What is left when this hold is gone are holds by id; an earlier run has left a mark
-- among them, lest a resend take one of those.
local mark = 'released:' .. owner
if held > 1 and not KEYS[2] then
  return {held, 0}
end
if KEYS[2] and redis.call('SISMEMBER', KEYS[2], mark) == 1 then
  return {held, 0}
end
-- In a life that the owner entered by id there is no hold of acquire.lua's.
if KEYS[2] and redis.call('SISMEMBER', KEYS[2], 'entered:' .. owner) == 1 then
  return {held, 0}
end
if held == 1 then
  redis.call('DEL', unpack(KEYS))
  redis.call(ARGV[3], ARGV[2], '0')
  return {0, 1}
end
held = redis.call('HINCRBY', KEYS[1], owner, -1)
redis.call('SADD', KEYS[2], mark)
-- Only ever shorter: unlocking one hold never lengthens the lease of another. And only
-- if all that is left is this session's: see extend.lua.
local there = 0
for i = 6, 5 + kept do
  there = there + redis.call('SISMEMBER', KEYS[2], ARGV[i])
end
if ttl > 0 and held == kept and there == held and redis.call('PTTL', KEYS[1]) > ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return {held, 1}
