-- acquire_write.lua: one more hold of the write side for an owner. A writer is alone, but for read
-- holds of its own taken later. Readers whose lease is over are thrown out; Redisson's once none of
-- ours is left. (The key of our readers is missing then, as readers.lua asks.)
-- A caller that waits enters the line of the writers if others are inside, or stand there; see writers.lua.
-- KEYS[1] to KEYS[3], ARGV[1] see owner.lua  KEYS[4] with an id: the ids
-- ARGV[2] lease in ms  ARGV[3] id of the hold; '' for the first one of a private owner, which is there or not
-- ARGV[4] twice the ms after which a refused writer looks again, for the mark that it leaves; 0: none
-- ARGV[5] what the names of timeout keys begin with
-- ARGV[6] write holds of it that this session has  ARGV[7] read holds; both left out with the rest if none
-- ARGV[8] id of the first hold of a private owner, which gets it now; ''
-- ARGV[9] what stands in front of the owner in its entry; '' or left out with the rest: it is not in the line; b: it
--   polls, and ARGV[10] is its session, ARGV[11] in how many ms it comes again, ARGV[12] for how many ms before that
--   the lock is to be left to it; or
-- ARGV[10] 1: its entry may be there  ARGV[11] 1: the session may listen to the lock's channel
-- ARGV[12] how many callers of it wait; 0: as before  ARGV[13] channel  ARGV[14] publish  ARGV[15] counts
-- ARGV[16] what makes a session's channel of its id  ARGV[17] 1: who is inside is to be told, as without an entry
-- Returns 1: granted, short for {1, 1, 0, 1}; {1, holds, 0, 1}: granted, for the lease at least
--   {0, ms, 0, 0}: refused; PTTL, or until the last reader's lease ends; -1: not known
--   {0, ms, Redis's time in ms, position}: it stands in the line; ms is -1 if it is not the first
--   Either may have one more element, an owner who is inside, and the latter then for how many ms
--   {-1, 0, 0, 0}: those of ARGV[6] or ARGV[7] are gone; {-2, 1, 0, 0}: it has the read side alone
-- Publishes the messages of line.lua, and that of wanted.lua where the caller is the first of the line
local before, across, ids = ARGV[6] or '0', ARGV[7] or '0', KEYS[4]
if before == '0' and across == '0' and redis.call('EXISTS', unpack(KEYS)) == 0 then
  local lease = ARGV[2] -- free, and nothing is left of an earlier life
  redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1] .. ':write', '1')
  redis.call('PEXPIRE', KEYS[1], lease)
  if ids then
    redis.call('SADD', ids, 'w' .. ARGV[3])
    redis.call('PEXPIRE', ids, lease)
  end
  return 1
end
local LINE = KEYS[3]
-- include owner, readers, no_lock, inside, wanted, writers
local heads, booking, ahead = entries(0)
local counted = ids and redis.pcall('SISMEMBER', ids, 'w' .. ARGV[3])
bad = bad or refused(heads) or refused(counted)
if bad then return bad end
if (writes <= 0 and before ~= '0') or (reads <= 0 and across ~= '0') then return {-1, 0, 0, 0} end
local books = ARGV[9] == 'b'
local entry = not books and (ARGV[9] or '') ~= '' and ARGV[9] .. ARGV[1]
if writes <= 0 then
  if reads > 0 and (across ~= '0' or expiry and expiry > now
      or still_in(ARGV[5] .. ARGV[1] .. ':rwlock_timeout:', reads) > 0) then
    return {-2, 1, 0, 0}
  end
  local taken = redis.call('HLEN', KEYS[1]) > (mode and 1 or 0)
  local tells = not entry or ARGV[17] == '1'
  -- Of a newcomer behind others, while a writer is inside, no more needs to be known.
  local behind = mode == 'write' and ahead and heads[1] ~= entry and ARGV[10] ~= '1' and not tells
  local ttl = taken and (behind and 0 or redis.call('PTTL', KEYS[1]))
  bad = taken and (ttl == -1 or mode ~= 'read' and mode ~= 'write') and (no_lock())
  if bad then return bad end
  -- For how long others keep the lock, in ms: a writer, another kind of lock; or readers.
  local behind_readers = taken and mode == 'read'
  local left, whose = taken and not behind_readers and ttl or nil, nil
  if behind_readers then
    while bury(now, 500, ARGV[5]) == 500 do end
    local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    while last[1] and redis.call('HEXISTS', KEYS[1], last[1]) == 0 do -- of an earlier life
      redis.call('ZREM', KEYS[2], last[1])
      last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    end
    left = last[1] and last[2] - now or redis.call('HLEN', KEYS[1]) > 1 and alive(ARGV[5]) or nil
    whose = last[1]
  end
  local reply
  if entry and (left or is_entry(heads[1])) then
    local at = {listens = ARGV[11] == '1', owner = ARGV[1], channel = ARGV[13], publish = ARGV[14], counts = ARGV[15], prefix = ARGV[16]}
    reply = wait_in_line(entry, heads, ahead, left, at, clock[1] * 1000000 + clock[2], now, ARGV[10] == '1', ARGV[12])
  elseif left then
    if books then book(ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12]), now) end
    reply = {0, left, 0, 0}
  elseif entry then
    local ms = booking and due(booking, now) or heads[1] and expects(now)
    reply = leave_to_others(ms, entry, clock[1] * 1000000 + clock[2], now, ARGV[11] == '1', ARGV[12])
  end
  local first = entry and (heads[1] == entry or not ahead)
  if left and not behind_readers and (first or tells) then
    whose = inside()
    if first then wanted(whose, ARGV[16]) end
  end
  if left and tells and not reply.err then
    reply[5] = whose
    reply[6] = whose and entry and left or nil
  end
  local live = tonumber(ARGV[4])
  if left and behind_readers and live > 0 then
    -- Alive until it has surely looked again, in time or when the last reader ends.
    keep_out(1000 + (left >= 0 and math.min(live, 2 * left) or live), now)
  end
  if reply then return reply end
  redis.call('DEL', KEYS[1], KEYS[2], ids or KEYS[1]) -- what is left of an earlier life
  redis.call('HSET', KEYS[1], 'mode', 'write')
end
if writes <= 0 or counted == 0 then
  if ids then redis.call('SADD', ids, 'w' .. ARGV[3]) end
  writes = redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', 1)
end
local ttl = int(math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], ttl)
if (ARGV[8] or '') ~= '' then redis.call('SADD', ids, 'w' .. ARGV[8]) end
if ids then redis.call('PEXPIRE', ids, ttl) end
if entry and heads[1] then
  heads, booking = entries(0)
  if heads[1] then take_writer_off(entry, booking or is_entry(heads[heads[1] == entry and 2 or 1])) end
end
return {1, writes, 0, 1}
