-- force_unlock.lua: ends the holds of every owner of a lock, plain or read-write (both sides), tells
-- the sessions of those owners, and lets the next one in. It names those that are meant, so that a run
-- that comes late leaves later ones alone. Where one that is meant may have the lock again, a mark tells a
-- second run that the first has done it. The owners' ids and timeout keys are left to end with their TTL.
-- KEYS[1] the lock: hash; deleted  KEYS[2] of a plain lock: the line, see line.lua, unless it cannot be named
-- KEYS[2] of a read-write lock: deleted too, and KEYS[3] its line, see owner.lua there
-- KEYS[i] the last one, with ARGV[6]: the mark of this request: set of the owners that it ended; expires
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] what makes a session's channel out of its id  ARGV[4] counts
-- ARGV[5] 1: the lock is a read-write lock  ARGV[6] for how many ms the mark stays; 0: none can be named
-- ARGV[7] and more: the owners that are meant; without any nothing is changed
-- Returns the owners, of a second run those that the first has ended; none if it is free or others hold
--   it; WRONGTYPE also for another kind of lock, and if what stands at the mark is none
-- Publishes 'lost:<length of owner>:<owner><key>' on the channels of the owners' sessions; then the
--   message of line.lua, or '0' on the lock's, of a read-write lock '1' before it, see release_write.lua.
local sides = ARGV[5] == '1'
local LINE = KEYS[sides and 3 or 2]
-- include refused, revoke, no_lock, admit, gate
local mark = ARGV[6] ~= '0' and KEYS[#KEYS] or nil
local ended = mark and redis.pcall('SMEMBERS', mark) or {}
local bad, both = refused(ended), nil
if bad or #ended > 0 then return bad or ended end
local fields = redis.pcall('HKEYS', KEYS[1])
bad = refused(fields)
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
local reply = revoke(owners, 7, ARGV[3], {unpack(KEYS, 1, sides and 2 or 1)}, mark, ARGV[6])
if reply then return reply end
local heads = LINE and entries(0)
if sides and not heads.err then
  redis.call('ZREM', LINE, 'm') -- see writers.lua
  open_gate(READ, ARGV[3], ARGV[4], select(2, time()))
end
if heads and is_entry(heads[1]) then
  local at = {channel = ARGV[1], publish = ARGV[2], prefix = ARGV[3], counts = ARGV[4]}
  local us, now = time()
  local _, given, again = admit(heads, at, us, now)
  if given then return owners end
  -- A release is sent again then. Of this script a second run does nothing.
  if again then call_newest(at.prefix, 0) end
end
if sides then redis.call(ARGV[2], ARGV[1], '1') end
redis.call(ARGV[2], ARGV[1], '0')
return owners
