-- state.lua: who holds a lock, how deep, and for how long. Read-only.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- Returns  {PTTL in ms, field, value, field, value, ...}; PTTL is -2 when free
--          WRONGTYPE error
-- Publishes nothing.
local fields = redis.pcall('HGETALL', KEYS[1])
if fields.err then -- an ACL's refusal is not about the type
  return string.find(fields.err, '[Uu]ser ') and fields
    or redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local reply = {redis.call('PTTL', KEYS[1])}
for _, v in ipairs(fields) do
  reply[#reply + 1] = v
end
return reply
