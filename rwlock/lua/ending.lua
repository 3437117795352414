-- ending.lua: what release_read.lua and release_write.lua share.
-- KEYS[1] to KEYS[3], ARGV[1] see owner.lua; the lock is deleted when it is free
-- KEYS[4] the reader's first timeout key  KEYS[5] the ids; left out if the claim has made none
-- ARGV[2] channel  ARGV[3] publish  ARGV[4] counts  ARGV[5] what makes a session's channel of its id
-- ARGV[6] 0: the owner is named; 1: it is private; 2: all that it has on this side ends. Left out with
--   all that follow: 2, and nothing stays. Behind it, of a reader, what stands in front of the owner in its entry, if that
--   may be in the line
-- ARGV[7] the time to live in ms that all that stays deserves; 0 leaves it
-- ARGV[8] the holds of the other side that this session keeps
-- ARGV[9] how many ids of holds that end follow; ARGV[10] how many of holds of this side that stay
-- ARGV[IDS] and more, IDS being 11, or what release_write.lua says: those of ARGV[9], ARGV[7] counting as 0 if
--   an extension has voided the first; those of ARGV[10]; those of ARGV[8]: the latter two of a named owner, and
--   with a time to live only
-- Returns receivers, for {0, 1, receivers}; or {holds left, changed, receivers}; or, where a writer of the line is
--   let in, or more are to be looked at, {0, 1, receivers, position, Redis's time in ms}: that of the entry that was
--   entered anew, or 0; -1: there may be more to be called: it is to be sent again
-- include owner, each, writers
local ids, whose = KEYS[5], string.sub(ARGV[6] or '2', 1, 1)
local heads, booking = entries(0)
local unreadable, other = refused(heads)
if other then heads, unreadable = {}, nil end -- it is of another type: nobody stands there
local waits = heads[1] or booking
bad = bad or unreadable or refused(ids and redis.pcall('SCARD', ids))
if gone then return {0, 0, -1} end -- so are the holds
if bad then return bad end
local keep, kept = tonumber(ARGV[7] or 0), IDS + (ARGV[9] or 0)
if keep > 0 and redis.call('SISMEMBER', ids, 'x' .. (ARGV[IDS] or '')) == 1 then keep = 0 end
local others, private = kept + (ARGV[10] or 0), whose ~= '0'
local at = {owner = ARGV[1], channel = ARGV[2], publish = ARGV[3], counts = ARGV[4], prefix = ARGV[5]}
-- take_out takes the ids of what ends on a side out of the set, and returns how many holds that is.
local function take_out(side, held, across, kept)
  if whose ~= '2' then return each('SREM', ids, side, IDS, kept - 1) end
  for _, id in ipairs(ids and across > 0 and redis.call('SMEMBERS', ids) or {}) do
    if string.sub(id, 1, 1) == side then redis.call('SREM', ids, id) end
  end
  return held
end
-- remove deletes keys, one a command: some may be gone with all that was in them, and the slot moving.
local function remove(...)
  for _, key in ipairs({...}) do redis.pcall('DEL', key) end
end
-- go_on has the line go on where the lock is found gone, as when its key was deleted: it calls the first writer, and before
-- that, if gate is true, the readers that wait. It returns true if there may be more.
local function go_on(gate)
  if not waits or redis.call('EXISTS', KEYS[1]) == 1 or called_until(now) > now or expects(now) then return false end
  local readers, ms = 0, 0
  if gate then readers, ms = open_gate(READ, at.prefix, at.counts, now) end
  return select(2, call_writer(at, now, readers > 0 and ms + 1 or 0))
end
-- publish tells that the lock is free, and returns the receivers.
local function publish(message)
  local receivers = redis.call(ARGV[3], ARGV[2], message)
  return ARGV[4] == '1' and receivers or -1
end
