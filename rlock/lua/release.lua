-- release.lua: ends holds that have ids, and takes back acquisitions whose outcome is unknown; the
-- lock is free when the owner has no hold left. Without ids it ends all that a private owner has,
-- whatever its count: a nested acquisition that came late must not keep the lock.
-- KEYS[1] the lock, KEYS[2] the ids, if the claim has made some: see acquire.lua; deleted at the end
-- ARGV[1] owner  ARGV[2] channel  ARGV[3] publish  ARGV[4] counts
-- ARGV[5] the TTL in ms that holds which stay deserve; 0 leaves it; left out like the rest: no ids
-- ARGV[6] 1: the owner is private  ARGV[7] how many ids follow of holds that end
-- ARGV[8] and more: those, see end_holds; then, of a named owner and with a TTL, those that stay
-- Returns receivers, for {0, 1, receivers}; or {holds left, changed, receivers}
-- Publishes '0' when the lock became free. (Where a broken client has left a field in vain.)
local ended = not ARGV[5] and redis.pcall('HDEL', KEYS[1], ARGV[1])
if ended == 1 then
  if KEYS[2] then redis.call('DEL', KEYS[2]) end
  local receivers = redis.call(ARGV[3], ARGV[2], '0')
  return ARGV[4] == '1' and receivers or -1
end
-- include refused, end_holds
local held = ended or redis.pcall('HGET', KEYS[1], ARGV[1])
local bad, gone = refused(held)
if bad and not gone then return bad end
if bad or (tonumber(held or 0) or 0) <= 0 then
  for i = 8, not bad and ARGV[7] and 7 + ARGV[7] or 0 do redis.pcall('SREM', KEYS[2], ARGV[i]) end
  return {0, 0, -1} -- the ids, if they are still there, speak of an earlier life
end
local reply = end_holds(KEYS[2], ARGV[1], tonumber(held), 8, 8 + ARGV[7], ARGV[5], ARGV[6])
if reply then return reply end
local receivers = redis.call(ARGV[3], ARGV[2], '0')
return {0, 1, ARGV[4] == '1' and receivers or -1}
