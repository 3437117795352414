-- acquire_shared.lua: one more hold for an owner whose id several processes may use.
--
-- No process knows the count of such an owner, so the request carries an id, and
-- its outcome is remembered next to the lock for as long as a resend may come.
-- Run twice with the same arguments it gives the same state and the same reply.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  the record of this request: string with a TTL, '<holds>:<token>' when
--          granted, 'undone' when taken back (see undo_shared.lua)
-- KEYS[3]  optional: the fencing token, an integer without TTL
-- ARGV[1]  owner
-- ARGV[2]  lease in ms
-- ARGV[3]  holds that this session has of it already (0: none that could be lost)
-- ARGV[4]  how long the record is kept, in ms
-- ARGV[5]  1: draw a token when the owner enters here; 0: report the present one
-- Returns  {1, holds, token or 0, 1}  granted; the TTL is at least the lease
--          {0, PTTL in ms, 0, 0}      held by another owner, or taken back
--          {-1, 0, 0, 0}              the holds of ARGV[3] are gone: lost
--          WRONGTYPE error            nothing was changed
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
  return redis.error_reply(wrongtype)
end
held = tonumber(held or 0) or 0
local lease = tonumber(ARGV[2])

local record = redis.call('GET', KEYS[2])
if record == 'undone' then
  return {0, 0, 0, 0}
end
-- A record whose lock has ended since is worth nothing: the request begins anew.
if record and held > 0 then
  if redis.call('PTTL', KEYS[1]) < lease then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
  local colon = string.find(record, ':', 1, true)
  return {1, tonumber(string.sub(record, 1, colon - 1)), tonumber(string.sub(record, colon + 1)), 1}
end

if held <= 0 then
  if tonumber(ARGV[3]) > 0 then
    return {-1, 0, 0, 0}
  end
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return {0, redis.call('PTTL', KEYS[1]), 0, 0}
  end
end

-- An owner that comes back into its own lock keeps the token it entered with.
local token = 0
if KEYS[3] then
  if held <= 0 or ARGV[5] == '1' then
    token = redis.pcall('INCR', KEYS[3])
  else
    token = redis.pcall('GET', KEYS[3])
  end
  if type(token) == 'table' then
    return redis.error_reply(wrongtype .. ': the fencing token is not an integer')
  end
  token = tonumber(token or 0) or 0
end

held = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
redis.call('SET', KEYS[2], string.format('%.0f:%.0f', held, token), 'PX', ARGV[4])
return {1, held, token, 1}
