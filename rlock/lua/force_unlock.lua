-- force_unlock.lua: ends the holds of every owner of a lock, plain or read-write (both sides), tells
-- the sessions of those owners, and lets the next one in. It names those that are meant, so that a run
-- that comes late leaves later ones alone. The owners' ids and timeout keys are left to end with their TTL.
-- KEYS[1] the lock: hash; deleted  KEYS[2] of a plain lock: the line, see line.lua, unless it cannot be named
-- KEYS[2] and KEYS[3] of a read-write lock: deleted too, see owner.lua there
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] what makes a session's channel out of its id  ARGV[4] counts
-- ARGV[5] and more: the owners that are meant; without any nothing is changed
-- Returns the owners; none if it is free or others hold it; WRONGTYPE also for another kind of lock
-- Publishes 'lost:<length of owner>:<owner><key>' on the channels of the owners' sessions; then the
--   message of line.lua, or '0' on the lock's, of a read-write lock '1' before it, see release_write.lua.
-- include refused, revoke, no_lock, line
local fields, sides = redis.pcall('HKEYS', KEYS[1]), #KEYS > 2
local bad, both = refused(fields), nil
if bad or #fields == 0 then return bad or fields end
bad, both = no_lock()
if bad or both ~= sides then
  return bad or (refused({err = 'wrong kind of value'}, ': the key is another kind of lock'))
end
local owners, seen = {}, {mode = sides}
for _, field in ipairs(fields) do
  local owner = sides and string.match(field, '^(.*):write$') or field
  if not seen[owner] then
    seen[owner], owners[#owners + 1] = true, owner
  end
end
local reply = revoke(owners, 5, ARGV[3], unpack(KEYS, 1, sides and 3 or 1))
if reply then return reply end
local heads = not sides and KEYS[2] and entries(0)
if heads and is_entry(heads[1]) then
  local at = {channel = ARGV[1], publish = ARGV[2], prefix = ARGV[3], counts = ARGV[4]}
  local us, now = clock()
  local _, given = admit(heads, at, us, now)
  if given then return owners end
end
if sides then redis.call(ARGV[2], ARGV[1], '1') end
redis.call(ARGV[2], ARGV[1], '0')
return owners
