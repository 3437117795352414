-- force_unlock.lua: ends the holds of every owner of a lock, plain or read-write (both sides), tells
-- the sessions of those owners, and wakes waiters. It names those that are meant, so that a run that
-- comes late leaves later ones alone. The owners' ids and timeout keys are left to end with their TTL.
-- KEYS[1] the lock: hash; deleted, and of a read-write lock KEYS[2] and KEYS[3], see owner.lua there
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] what makes a session's channel out of its id
-- ARGV[4] and more: the owners that are meant; without any nothing is changed
-- Returns the owners; none if it is free or others hold it; WRONGTYPE also for another kind of lock
-- Publishes 'lost:<length of owner>:<owner><key>' on the channels of the owners' sessions; then '0'
--   on the lock's, of a read-write lock '1' before it, see release_write.lua of rwlock.
-- include refused, revoke, no_lock
local fields, sides = redis.pcall('HKEYS', KEYS[1]), #KEYS > 1
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
local reply = revoke(owners, 4, ARGV[3], unpack(KEYS))
if reply then return reply end
if sides then redis.call(ARGV[2], ARGV[1], '1') end
redis.call(ARGV[2], ARGV[1], '0')
return owners
