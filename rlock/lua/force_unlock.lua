-- force_unlock.lua: ends any owner's hold, tells the sessions of those owners, and
-- wakes a waiter. Run twice it leaves the same state; the second run finds nothing.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted
-- ARGV[1]  channel of the lock
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  the prefix that makes a session's channel out of a session id
-- Returns  the owners whose hold was ended, none if it was free
--          WRONGTYPE error: nothing was changed
-- Publishes 'lost:<length of owner>:<owner><key>' on the channels of the owners' sessions,
--          then '0' on the lock's channel if it was held.
-- include refused, tell_lost
local owners = redis.pcall('HKEYS', KEYS[1])
local bad = refused(owners)
if bad or #owners == 0 then
  return bad or owners
end
redis.call('DEL', KEYS[1])
for _, owner in ipairs(owners) do
  tell_lost(owner, ARGV[3])
end
redis.call(ARGV[2], ARGV[1], '0')
return owners
