-- release.lua: ends holds that have ids, takes back acquisitions whose outcome is unknown, and takes
-- the entries of named owners out of the queue; without ids it ends all that a private owner has,
-- whatever its count, or takes its entry out. When the lock is free the next run gets it.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5] see grant.lua  ARGV[6] owner
-- ARGV[7] with ids: what an entry of this session has in front of an id; else the owner's entry
-- ARGV[8] 1: the owner is private. Left out with what follows: all that a private owner has ends
-- ARGV[9] the TTL in ms that the holds deserve which stay; 0 leaves it
-- ARGV[10] how many ids follow of holds that end, or of waiters that leave
-- ARGV[11] and more: those, see end_holds; then, of a named owner and with a TTL, those that stay
-- Returns receivers, for {0, 1, receivers}; or {holds left, changed, receivers}
-- Publishes when the lock became free: the message of grant.lua, else '0' on the lock's channel
local ended = not ARGV[8] and redis.pcall('HDEL', KEYS[1], ARGV[6])
if ended == 1 and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[4]) == 0 then
  local receivers = redis.call(ARGV[2], ARGV[1], '0')
  return ARGV[4] == '1' and receivers or -1
end
-- include refused, end_holds, grant
local held = ended or redis.pcall('HGET', KEYS[1], ARGV[6])
local bad, gone = refused(held) -- gone: something else stands under the name, and the holds are gone
local ids, unusable = refused(ARGV[8] and redis.pcall('SCARD', KEYS[4]), ': the ids of holds')
bad = bad or unusable and ids -- what else keeps it from looking there keeps nobody in
if bad and not gone then return bad end
held = not gone and tonumber(held or 0) or 0
local kept = 11 + (ARGV[10] or 0)
for i = 11, ARGV[8] == '0' and kept - 1 or 0 do leave(ARGV[7] .. ARGV[i] .. ARGV[6]) end
if ended and ended ~= 1 then leave(ARGV[7]) end
if held <= 0 then
  for i = 11, ARGV[8] and kept - 1 or 0 do redis.pcall('SREM', KEYS[4], ARGV[i]) end
  -- The lock may have been given up, or have run out, with this one in front.
  if redis.call('EXISTS', KEYS[1]) == 0 then grant() end
  return {0, 0, -1}
end
if not ended then
  local reply = end_holds(KEYS[4], ARGV[6], held, 11, kept, ARGV[9], ARGV[8])
  if reply then return reply end
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  return {0, 1, -1} -- the other fields are those of a broken client
else
  redis.call('DEL', KEYS[4])
end
local receivers = not grant() and redis.call(ARGV[2], ARGV[1], '0')
return {0, 1, ARGV[4] == '1' and receivers or -1}
