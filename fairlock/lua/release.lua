-- release.lua: ends holds, and gives the lock to the next waiter when it is free; takes
-- back acquisitions whose outcome is unknown, and the places of waiters that leave.
--
-- What has ended already, or belongs to an earlier life of the lock, is not released
-- again: run twice with the same arguments it leaves the same holds. Only `changed`
-- tells the runs apart.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5]: see grant.lua
-- ARGV[6]   owner
-- ARGV[7]   0: the owner is named; 1: it is private: what stays is all of this session; 2: it
--           is private, and all that it has ends
-- ARGV[8]   the TTL in ms that the holds deserve which stay; 0 leaves it
-- ARGV[9]   what the ids of holds have in front of them in the queue
-- ARGV[10]  how many ids follow of holds that end, or of waiters that leave
-- ARGV[i]   i > 10: those; then, of a named owner and with a TTL, the ids of the holds that
--           this session keeps
-- Returns  {holds left, changed, receivers}; changed is 0 if none of the holds was there;
--          receivers is how many connections heard that the lock is free, -1 if that is
--          not known or nothing was published
--          WRONGTYPE error if a helper key is unusable: nothing was changed
-- Publishes when the lock became free 'grant:<now>:<token>:<id>' on the channel of the
--          session whose waiter is let in, or, if there is none, '0' on the lock's channel.
-- include grant, there
local bad, which = unusable()
if which == 1 then
  return {0, 0, -1} -- something else stands under the name: the holds are gone
elseif bad then
  return bad
end
local kept = 11 + ARGV[10]
for i = 11, redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 and kept - 1 or 0 do
  forget(ARGV[9] .. ARGV[i])
end
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[6]) or 0) or 0
if held <= 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then
    grant({}) -- it may have been given up, or have run out, with the place of this one in front
  end
  return {0, 0, -1}
end
local ended = ARGV[7] == '2' and held or 0
for i = 11, ended == 0 and kept - 1 or 0 do
  ended = ended + redis.call('SREM', KEYS[4], ARGV[i])
end
if ended == 0 then
  return {held, 0, -1}
elseif held <= ended then
  redis.call('DEL', KEYS[1], KEYS[4])
  local receivers = not grant({}) and redis.call(ARGV[2], ARGV[1], '0')
  return {0, 1, ARGV[4] == '1' and receivers or -1}
end
held = redis.call('HINCRBY', KEYS[1], ARGV[6], -ended)
-- Only ever shorter: unlocking one hold never lengthens the lease of another.
local ttl = tonumber(ARGV[8])
if ttl > 0 and redis.call('PTTL', KEYS[1]) > ttl and (ARGV[7] == '1' or there(KEYS[4], '', kept, #ARGV) == held) then
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[4], ttl)
end
return {held, 1, -1}
