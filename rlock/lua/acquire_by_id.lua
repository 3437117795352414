-- acquire_by_id.lua: one more hold for an owner that has one already, or whose id several
-- processes may use.
--
-- Nobody knows the whole count of such an owner, so each hold has an id, kept next to
-- the lock. Run twice with the same arguments it gives the same state and the same
-- reply: an id that is there already is not counted again.
--
-- An owner that enters this way leaves a mark among the ids: whatever acquire.lua gave it
-- before was in an earlier life of the lock.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  the ids of the holds that were taken this way: set; lives and dies with
--          the lock, so that an id never speaks of a later life of it
-- KEYS[3]  optional: the fencing token, an integer without TTL
-- ARGV[1]  owner
-- ARGV[2]  lease in ms
-- ARGV[3]  holds that this session has of it already (0: none that could be lost)
-- ARGV[4]  id of the hold
-- ARGV[5]  1: draw a token although the owner holds the lock; 0: only if it enters
-- Returns  {1, holds, token or 0, 1}  granted; the TTL is at least the lease
--          {0, PTTL in ms, 0, 0}      held by another owner
--          {-1, 0, 0, 0}              the holds of ARGV[3] are gone: lost
--          WRONGTYPE error            nothing was changed
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then -- an ACL's refusal is not about the type
  return string.find(held.err, '[Uu]ser ') and held or redis.error_reply(wrongtype)
end
held = tonumber(held or 0) or 0
local counted = held > 0 and redis.call('SISMEMBER', KEYS[2], ARGV[4]) == 1

if held <= 0 then
  if tonumber(ARGV[3]) > 0 then
    return {-1, 0, 0, 0}
  end
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return {0, redis.call('PTTL', KEYS[1]), 0, 0}
  end
end

-- The token comes first: if its key is unusable, nothing has been changed yet. An
-- owner that comes back into its own lock keeps the token that it entered with.
local token = 0
if KEYS[3] then
  local draw = held <= 0 or (ARGV[5] == '1' and not counted)
  token = redis.pcall(draw and 'INCR' or 'GET', KEYS[3])
  if type(token) == 'table' then
    return redis.error_reply(wrongtype .. ': the fencing token is not an integer')
  end
  token = tonumber(token or 0) or 0
end

if held <= 0 then
  redis.call('DEL', KEYS[2]) -- ids of an earlier life
  redis.call('SADD', KEYS[2], 'entered:' .. ARGV[1])
end
if not counted then
  held = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('SADD', KEYS[2], ARGV[4])
end
local ttl = redis.call('PTTL', KEYS[1])
if ttl < tonumber(ARGV[2]) then
  ttl = tonumber(ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('PEXPIRE', KEYS[2], string.format('%.0f', ttl))
return {1, held, token, 1}
