-- acquire.lua: the first hold of an owner that was just made and that nobody else knows.
-- Its further holds, and all of owners that others may use, go by acquire_by_id.lua.
--
-- Run twice with the same arguments it gives the same state, and the same reply but
-- for `changed`: a hold that is there already is not counted again.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  optional: the fencing token, an integer without TTL; drawn with the hold
-- ARGV[1]  owner
-- ARGV[2]  lease in ms
-- Returns  {1, holds, token or 0, changed}  granted; the TTL is at least the lease
--          {0, PTTL in ms, 0, 0}            held by another; PTTL is -1 without one
--          WRONGTYPE error                  nothing was changed
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then -- an ACL's refusal is not about the type
  return string.find(held.err, '[Uu]ser ') and held or redis.error_reply(wrongtype)
end
held = tonumber(held or 0) or 0
local changed = held <= 0
if changed and redis.call('EXISTS', KEYS[1]) == 1 then
  return {0, redis.call('PTTL', KEYS[1]), 0, 0}
end

-- The token comes first: if its key is unusable, nothing has been changed yet.
local token = 0
if KEYS[2] then
  token = redis.pcall(changed and 'INCR' or 'GET', KEYS[2])
  if type(token) == 'table' then
    return redis.error_reply(wrongtype .. ': the fencing token is not an integer')
  end
  token = tonumber(token or 0) or 0
end

if changed then
  held = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
end
if changed or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {1, held, token, changed and 1 or 0}
