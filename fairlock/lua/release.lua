-- release.lua: ends holds, and gives the lock to the next waiter when it is free; takes
-- back acquisitions whose outcome is unknown, and the places of waiters that leave.
--
-- What has ended already, or belongs to an earlier life of the lock, is not released
-- again: run twice with the same arguments it leaves the same holds. Only `changed`
-- tells the runs apart.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5]: see grant.lua
-- ARGV[6]   owner
-- ARGV[7]   the holds that this session keeps
-- ARGV[8]  the TTL in ms that those deserve; 0 leaves it
-- ARGV[9]  what the ids of holds have in front of them in the queue
-- ARGV[10]  how many holds to end
-- ARGV[i]   i > 10: the ids of those; then the ids of the holds of ARGV[7]: needed only
--          with a TTL
-- Returns  {holds left, changed}; changed is 0 if none of the ids was there
--          WRONGTYPE error if a helper key is unusable: nothing was changed
-- Publishes when the lock became free 'grant:<now>:<token>:<id>' on the channel of the
--          session whose waiter is let in, or, if nobody waits, '0' on the lock's channel.
-- include grant.lua
local bad, which = unusable()
if which == 1 then
  return {0, 0} -- something else stands under the name: the holds are gone
elseif bad then
  return bad
end
local kept = 11 + ARGV[10]
if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then
  for i = 11, kept - 1 do
    forget(ARGV[9] .. ARGV[i])
  end
end
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[6]) or 0) or 0
if held <= 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then
    grant({}) -- it may have been given up, or have run out, with the place of this one in front
  end
  return {0, 0}
end
local ended = 0
for i = 11, kept - 1 do
  ended = ended + redis.call('SREM', KEYS[4], ARGV[i])
end
if ended == 0 then
  return {held, 0}
end
if held <= ended then
  redis.call('DEL', KEYS[1], KEYS[4])
  if not grant({}) then
    redis.call(ARGV[2], ARGV[1], '0')
  end
  return {0, 1}
end
held = redis.call('HINCRBY', KEYS[1], ARGV[6], -ended)
-- Only ever shorter: unlocking one hold never lengthens the lease of another. And only
-- if all that is left is this session's; their number alone does not say so, since what it
-- keeps may be of an earlier life of the lock.
local ttl, there = tonumber(ARGV[8]), 0
for i = kept, #ARGV do
  there = there + redis.call('SISMEMBER', KEYS[4], ARGV[i])
end
if ttl > 0 and held == tonumber(ARGV[7]) and there == held and redis.call('PTTL', KEYS[1]) > ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[4], ttl)
end
return {held, 1}
