-- ending.lua: what release_read.lua and release_write.lua share.
-- KEYS[1] to KEYS[3], ARGV[1] see owner.lua; the lock is deleted when it is free
-- KEYS[4] the reader's first timeout key  KEYS[5] the ids; left out if the claim has made none
-- ARGV[2] channel  ARGV[3] publish  ARGV[4] counts
-- ARGV[5] 0: the owner is named; 1: it is private; 2: all that it has on this side ends. Left out with
--   all that follow: 2, nothing stays, and no mark was left
-- ARGV[6] the time to live in ms that all that stays deserves; 0 leaves it
-- ARGV[7] the holds of the other side that this session keeps
-- ARGV[8] how many ids of holds that end follow; ARGV[9] how many of holds of this side that stay
-- ARGV[10] and more: those of ARGV[8], ARGV[6] counting as 0 if an extension has voided the first;
--   those of ARGV[9]; those of ARGV[7]: the latter two of a named owner, and with a time to live only
-- Returns receivers, for {0, 1, receivers}; or {holds left, changed, receivers}
-- include owner, each
local ids, whose = KEYS[5], ARGV[5] or '2'
local marks = redis.pcall('ZCARD', KEYS[3])
bad = bad or refused(marks) or refused(ids and redis.pcall('SCARD', ids))
if gone then return {0, 0, -1} end -- so are the holds
if bad then return bad end
local keep, kept = tonumber(ARGV[6] or 0), 10 + (ARGV[8] or 0)
if keep > 0 and redis.call('SISMEMBER', ids, 'x' .. (ARGV[10] or '')) == 1 then keep = 0 end
local others, private = kept + (ARGV[9] or 0), whose ~= '0'
-- take_out takes the ids of what ends on a side out of the set, and returns how many holds that is.
local function take_out(side, held, across, kept)
  if ARGV[5] and ARGV[5] ~= '2' then return each('SREM', ids, side, 10, kept - 1) end
  for _, id in ipairs(ids and across > 0 and redis.call('SMEMBERS', ids) or {}) do
    if string.sub(id, 1, 1) == side then redis.call('SREM', ids, id) end
  end
  return held
end
-- remove deletes keys, one a command: some may be gone with all that was in them, and the slot moving.
local function remove(...)
  for _, key in ipairs({...}) do redis.pcall('DEL', key) end
end
-- publish tells that the lock is free, and returns the receivers.
local function publish(message)
  local receivers = redis.call(ARGV[3], ARGV[2], message)
  return ARGV[4] == '1' and receivers or -1
end
