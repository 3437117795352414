-- acquire.lua: one more hold for an owner; one that is there already is not counted again.
-- KEYS[1] the lock: hash, owner -> holds
-- KEYS[2] with an id: set of the ids of such holds, and x<id> for each void extension; lives and dies
--   with the lock, so that an id never speaks of a later life of it
-- KEYS[i] the last one, with tokens or ARGV[6]: the fencing token, an integer
-- ARGV[1] owner  ARGV[2] lease in ms, at least
-- ARGV[3] how many fencing tokens to reserve; left out with what follows if that says nothing
-- ARGV[4] holds that this session has of the owner already; 0: none that could be lost
-- ARGV[5] id of the hold; '' for the first one of a private owner, which is there or not
-- ARGV[6] for how many ms the fencing token outlives the lock; left out: it has no end
-- Returns 1, for {1, 1, 0, 1}, or {1, holds, highest token reserved or 0, changed}: granted
--   {0, PTTL, 0, 0}: held by another owner; {-1, 0, 0, 0}: the holds of ARGV[4] are gone
local owner, lease = ARGV[1], ARGV[2]
if not ARGV[3] and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], owner, '1') -- free, and neither ids nor tokens are asked for
  redis.call('PEXPIRE', KEYS[1], lease)
  return 1
end
-- include refused, no_lock, outlive
local tokens, before, id = ARGV[3] or '0', ARGV[4] or '0', ARGV[5] ~= '' and ARGV[5]
local held = redis.pcall('HGET', KEYS[1], owner)
if type(held) == 'table' then return (refused(held)) end
held = tonumber(held or 0) or 0
local ttl = redis.call('PTTL', KEYS[1])
if held <= 0 and before ~= '0' then return {-1, 0, 0, 0} end
if held <= 0 and ttl ~= -2 then return (no_lock()) or {0, ttl, 0, 0} end
local counted = held > 0 and (not id or redis.call('SISMEMBER', KEYS[2], id) == 1)
-- The tokens come first: if their key is unusable, nothing has been changed yet. A named
-- owner that comes back into its own lock keeps the token that it entered with.
local token = 0
if tokens ~= '0' then
  local enters = held <= 0 or (before ~= '0' and not counted)
  token = enters and redis.pcall('INCRBY', KEYS[#KEYS], tokens) or redis.pcall('GET', KEYS[#KEYS])
  if type(token) == 'table' then return (refused(token, ': the fencing token is not an integer')) end
  token = tonumber(token or 0) or 0
end
if not counted then
  if id and held <= 0 then redis.call('DEL', KEYS[2]) end -- ids of an earlier life
  if id then redis.call('SADD', KEYS[2], id) end
  held = redis.call('HINCRBY', KEYS[1], owner, 1)
end
if ttl < tonumber(lease) then
  ttl = lease
  redis.call('PEXPIRE', KEYS[1], ttl)
end
if id then redis.call('PEXPIRE', KEYS[2], ttl) end
outlive(KEYS[#KEYS], ttl, ARGV[6])
return {1, held, token, counted and 0 or 1}
