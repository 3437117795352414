-- acquire.lua: brings an owner that lives in one session to the hold count it wants.
--
-- Run twice with the same arguments it leaves the same state: it sets the count
-- that is wanted, it does not add one. Only `changed` tells the runs apart.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  optional: the fencing token, an integer without TTL
-- ARGV[1]  owner
-- ARGV[2]  lease in ms
-- ARGV[3]  holds that the owner has by the session's knowledge (0: outermost)
-- ARGV[4]  holds that it wants
-- ARGV[5]  1: draw a token with this acquisition; 0: report the present one
-- Returns  {1, holds, token or 0, changed}  granted; the TTL is at least the lease
--          {0, PTTL in ms, 0, 0}            held by another; PTTL is -1 without one
--          {-1, 0, 0, 0}                    the holds of ARGV[3] are gone: lost
--          WRONGTYPE error                  nothing was changed
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
  return redis.error_reply(wrongtype)
end
held = tonumber(held or 0) or 0
local want = tonumber(ARGV[4])

if held <= 0 then
  if tonumber(ARGV[3]) > 0 then
    return {-1, 0, 0, 0}
  end
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return {0, redis.call('PTTL', KEYS[1]), 0, 0}
  end
end

-- The token comes first: if its key is unusable, nothing has been changed yet.
local changed = held < want
local token = 0
if KEYS[2] then
  if changed and ARGV[5] == '1' then
    token = redis.pcall('INCR', KEYS[2])
  else
    token = redis.pcall('GET', KEYS[2])
  end
  if type(token) == 'table' then
    return redis.error_reply(wrongtype .. ': the fencing token is not an integer')
  end
  token = tonumber(token or 0) or 0
end

if changed then
  redis.call('HINCRBY', KEYS[1], ARGV[1], want - held)
  held = want
end
-- A longer lease of an outer hold stays: the lease belongs to the acquisition.
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {1, held, token, changed and 1 or 0}
