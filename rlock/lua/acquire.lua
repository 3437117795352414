-- acquire.lua: one more hold for an owner; one that is there already is not counted again. A caller that
-- waits enters the line of the lock if another owner holds it, or others wait; see line.lua.
-- KEYS[1] the lock: hash, owner -> holds  KEYS[2] with an entry: the line
-- KEYS[i] next, with an id: set of the ids of such holds, and x<id> for each void extension; lives and
--   dies with the lock, so that an id never speaks of a later life of it
-- KEYS[i] the last one, with tokens or ARGV[7]: the fencing token, an integer
-- ARGV[1] owner  ARGV[2] lease in ms, at least
-- ARGV[3] what stands in front of the owner in its entry; '' or left out: it does not wait in the line; b: it
--   polls; o: of a fair lock, it does not wait and lets nobody wait for it either; r: it only re-enters
-- ARGV[4] how many fencing tokens to reserve; '', or left out with what follows: nor is there an id
-- ARGV[5] holds that this session has of the owner already; 0: none that could be lost
-- ARGV[6] id of the hold; '' for the first one of a private owner, which is there or not
-- ARGV[7] for how many ms the fencing token outlives the lock; '': it has no end
-- ARGV[8] 1: its entry may be in the line; left out with what follows: no  ARGV[9] 1: the session may listen to the lock's channel
-- ARGV[10] channel  ARGV[11] publish  ARGV[12] counts  ARGV[13] what makes a session's channel of its id
-- ARGV[14] how many callers of the session, of a fair entry how many of it, wait; 0: as was said before
-- ARGV[15] where ARGV[3] is b: its session  ARGV[16] in how many ms it comes again
-- ARGV[17] for how many ms before that the lock is to be left to it
-- ARGV[15] of a fair entry: the entry of the session to join if that is the last of the line, or ''
-- ARGV[16] the number of the entry's last caller: that is said, and never added to  ARGV[17] its position before, or 0
-- ARGV[18] how many callers wait then of the entry of ARGV[15]
-- ARGV[19], but ARGV[15] of an entry that is not fair, 1: who holds the lock is to be told
-- Returns 1, for {1, 1, 0, 1}, or {1, holds, highest token reserved or 0, changed}: granted
--   {0, PTTL, 0, 0, owner}: held by that owner; {-1, 0, 0, 0}: the holds of ARGV[5] are gone
--   {0, ms, Redis's time in ms, position}, and the owner and the PTTL if that is to be told: it stands in the line.
--   ms is the PTTL if it is the first, else -1
--   {0, -1, Redis's time in ms, 0}: it has joined the entry of ARGV[15]
-- Publishes the messages of line.lua, and that of wanted.lua where the caller is the first of the line
local owner, lease, there = ARGV[1], ARGV[2], nil
if (ARGV[4] or '') == '' then
  there = redis.call('EXISTS', KEYS[1], KEYS[2] or KEYS[1])
  if there == 0 then
    redis.call('HSET', KEYS[1], owner, '1') -- free, and neither ids nor tokens are asked for
    redis.call('PEXPIRE', KEYS[1], lease)
    return 1
  end
end
local LINE = KEYS[2]
-- include refused, no_lock, wanted, outlive, admit, join
local head, before, id = ARGV[3] or '', ARGV[5] or '0', (ARGV[6] or '') ~= '' and ARGV[6]
local tokens = (ARGV[4] or '') ~= '' and ARGV[4] or '0'
local ends = ARGV[7] ~= '' and ARGV[7]
local books, orderly = head == 'b', head == 'o' or head == 'r'
local entry = head ~= '' and not books and not orderly and head .. owner
local fair = entry and is_fair(entry)
local ids = KEYS[head ~= '' and 3 or 2]
local held = redis.pcall('HGET', KEYS[1], owner)
if type(held) == 'table' then return (refused(held)) end
held = tonumber(held or 0) or 0
-- Of a caller that comes behind others, while the lock is held, no more needs to be known.
local heads, booking, ahead, came, tail
local new = entry and ARGV[8] ~= '1' and (not fair or ARGV[17] == '0')
if (entry or orderly) and held <= 0 then
  if fair and new then
    tail = last_of_line()
    ahead = tail.err or tail[1] and tail[1] ~= entry
    heads = ahead and tail
  end
  if not heads then heads, booking, ahead = entries(0) end
end
if heads and heads.err then return (refused(heads, ': the line')) end
local ttl = there == 2 and new and ahead and heads[1] ~= entry and (not fair or heads == tail) and 0
  or redis.call('PTTL', KEYS[1])
if held <= 0 and before ~= '0' then return {-1, 0, 0, 0} end
if held <= 0 and ttl ~= -2 and (not entry or ttl == -1) then
  local bad, _, whose = no_lock()
  if books and not bad then book(ARGV[15], tonumber(ARGV[16]), tonumber(ARGV[17]), select(2, time())) end
  return bad or {0, ttl, 0, 0, whose}
end
local at = {channel = ARGV[10], publish = ARGV[11], counts = ARGV[12], prefix = ARGV[13],
  token = tokens ~= '0' and KEYS[#KEYS]}
if orderly and held <= 0 then
  local us, now = time()
  local waiting = is_entry(heads[1])
  if waiting and called_until(now) <= now then
    local first, _, again = admit(heads, at, us, now, nil, nil, false, booking)
    waiting = first or again -- else those who waited have died
  end
  if waiting or head == 'r' then return {0, -1, 0, 0} end
  heads, booking = nil, nil
end
if booking and ttl == -2 and not is_entry(heads[1]) then -- nobody else stands there
  local us, now = time()
  local reply = leave_to_others(due(booking, now), entry, us, now, ARGV[9] == '1', ARGV[14])
  if reply then return reply end
end
if heads and (ttl ~= -2 or is_entry(heads[1]) and heads[1] ~= entry) then
  local tells, whose = ARGV[fair and 19 or 15] == '1', nil
  local first = not ahead or heads[1] == entry
  if ttl ~= -2 and (tells or first) then
    local bad, _, owner = no_lock()
    if bad then return bad end
    if first then wanted(owner, at.prefix) end
    whose = tells and owner or nil
  end
  local us, now = time()
  local position = ARGV[8] == '1' and redis.call('ZSCORE', LINE, entry)
  came = not position
  if fair and not position then
    tail = tail or last_of_line()
    if joins(ARGV[15], tail, tonumber(ARGV[16]), now, ARGV[18]) then return {0, -1, now, 0} end
    position = behind(tonumber(ARGV[17]), tail, us)
  end
  position = tonumber(position or us)
  local back = position >= PASSED -- it was passed over, and is heard of again: it may be the first now
  if back then position = position - PASSED end
  local bad = enter(entry, position, us, now, ARGV[9] == '1', ARGV[14], ARGV[8] == '1', fair and ARGV[16])
  if bad then return (refused(bad, ': the line')) end
  if back or fair and (ttl == -2 or ahead and heads ~= tail) then -- it may have come in front of others
    heads = entries(0)
    first = heads[1] == entry
  end
  if ttl ~= -2 then
    return {0, first and ttl or -1, now, position, whose, whose and redis.call('PTTL', KEYS[1]) or nil}
  end
  if heads[1] ~= entry then
    -- The lock is free, and others stand in front: it is left to the one that was called, for a while.
    local called = called_until(now)
    if called > now then return {0, called - now, now, position} end
    if not ARGV[8] then return {0, 0, now, position} end -- it is to ask again, and to say all
    pass_over(heads[1], at.prefix, called, now)
    local first, _, again = admit(entries(0), at, us, now, nil, {[entry] = true})
    if first and first ~= entry then return {0, -1, now, position} end
    if fair and again then return {0, 0, now, position} end
  end
end
local counted = held > 0 and (not id or redis.call('SISMEMBER', ids, id) == 1)
-- The tokens come first: if their key is unusable, the lock has not been changed yet. A named
-- owner that comes back into its own lock keeps the token that it entered with.
local token = 0
if tokens ~= '0' then
  local enters = held <= 0 or (before ~= '0' and not counted)
  token = enters and redis.pcall('INCRBY', KEYS[#KEYS], tokens) or redis.pcall('GET', KEYS[#KEYS])
  if type(token) == 'table' then
    if came then leave(entry, at) end -- it stood there in vain
    return (refused(token, ': the fencing token is not an integer'))
  end
  token = tonumber(token or 0) or 0
end
if not counted then
  if id and held <= 0 then redis.call('DEL', ids) end -- ids of an earlier life
  if id then redis.call('SADD', ids, id) end
  held = redis.call('HINCRBY', KEYS[1], owner, 1)
end
if ttl < tonumber(lease) then -- never less: this attempt may come late, behind an extension
  ttl = lease
  redis.call('PEXPIRE', KEYS[1], ttl)
end
if id then redis.call('PEXPIRE', ids, ttl) end
outlive(KEYS[#KEYS], ttl, ends)
if entry and (ARGV[8] == '1' or heads and heads[1]) then -- what may stand in the line is served
  heads, booking = entries(0)
  if not heads.err then take_off(entry, booking or is_entry(heads[heads[1] == entry and 2 or 1])) end
end
return {1, held, token, counted and 0 or 1}
