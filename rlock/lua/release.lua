-- release.lua: brings an owner that lives in one session down to the hold count it
-- wants; at 0 the lock is free.
--
-- Run twice with the same arguments it leaves the same state and the same holds.
-- Only `changed` tells the runs apart: 0 in a first run means that the hold was
-- lost before; 0 in a resend means that an earlier run has done it.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted when no hold is left
-- ARGV[1]  owner
-- ARGV[2]  holds that the owner has by the session's knowledge
-- ARGV[3]  holds that it wants to keep
-- ARGV[4]  if holds are kept: the TTL in ms that those deserve; 0 leaves it
-- ARGV[5]  channel of the lock
-- ARGV[6]  PUBLISH or SPUBLISH
-- Returns  {holds left, changed}
-- Publishes '0' on the channel when the lock became free.
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
  return {0, 0} -- something else stands under the name: the hold is gone
end
held = tonumber(held or 0) or 0
local known, want = tonumber(ARGV[2]), tonumber(ARGV[3])
if held <= want then
  return {held, 0}
end
-- More than we know of: the owner's id was passed on and re-entered elsewhere
-- (see WithOwner). What others hold is not ours to release.
local left = want
if held > known then
  left = held - (known - want)
end
if left > 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], left - held)
  -- Only ever shorter: unlocking an inner hold never lengthens a fixed lease.
  local ttl = tonumber(ARGV[4])
  if ttl > 0 and held <= known and redis.call('PTTL', KEYS[1]) > ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  return {left, 1}
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[6], ARGV[5], '0')
return {0, 1}
