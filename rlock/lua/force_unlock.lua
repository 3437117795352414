-- force_unlock.lua: ends any owner's hold, tells the sessions of those owners, and
-- wakes a waiter. Run twice it leaves the same state; the second run finds nothing. Which
-- owners are meant is asked first, so that a run that comes late leaves later ones alone.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted
-- ARGV[1]  channel of the lock
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  the prefix that makes a session's channel out of a session id
-- ARGV[4] and more: the owners that are meant; without any nothing is changed
-- Returns  the owners that hold it, if one of them is meant their hold was ended; none if it
--          is free, or if none of them is meant
--          WRONGTYPE error: nothing was changed; so too for a hash that is no lock, or another
--          kind of lock
-- Publishes 'lost:<length of owner>:<owner><key>' on the channels of the owners' sessions,
--          then '0' on the lock's channel if it was held.
-- include refused, tell_lost, among, no_lock
local owners = redis.pcall('HKEYS', KEYS[1])
local bad, both = refused(owners), nil
if not bad and #owners > 0 then
  bad, both = no_lock()
end
if both and not bad then
  bad = refused({err = 'wrong kind of value'}, ': the key is another kind of lock')
end
if bad or not ARGV[4] then
  return bad or owners
elseif not among(owners, 4) then
  return {}
end
redis.call('DEL', KEYS[1])
for _, owner in ipairs(owners) do
  tell_lost(owner, ARGV[3])
end
redis.call(ARGV[2], ARGV[1], '0')
return owners
