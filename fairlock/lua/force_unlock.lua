-- force_unlock.lua: ends any owner's hold, tells the sessions of those owners, and lets the
-- next waiter in. Run twice it does not touch the waiter that the first run let in: it
-- leaves a mark among the ids of that one's holds.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5]: see grant.lua; KEYS[1] is deleted
-- ARGV[6]  id of the request
-- Returns  the owners whose hold was ended, none if it was free, or in a second run
--          WRONGTYPE error: nothing was changed
-- Publishes 'lost:<length of owner>:<owner><key>' on the channels of the owners' sessions;
--          then, if the lock was held, 'grant:<now>:<token>:<id>' on the channel of the
--          session whose waiter is let in, or, if there is none, '0' on the lock's channel.
-- include grant, tell_lost
local bad = unusable()
if bad then
  return bad
end
local mark = 'forced:' .. ARGV[6]
if redis.call('SISMEMBER', KEYS[4], mark) == 1 then
  return {}
end
local owners = redis.call('HKEYS', KEYS[1])
if #owners == 0 then
  return owners
end
redis.call('DEL', KEYS[1], KEYS[4])
for _, owner in ipairs(owners) do
  tell_lost(owner, ARGV[3])
end
if grant({}) then
  redis.call('SADD', KEYS[4], mark)
else
  redis.call(ARGV[2], ARGV[1], '0')
end
return owners
