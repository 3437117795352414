-- acquire_read.lua: one more hold of the read side for an owner. A reader waits while a writer holds
-- the lock, or while the mark of a waiting writer is live, see mark.lua, whom readers without end would keep out; unless
-- a writer has left since it began to wait, see gate.lua. An owner that is in already always gets in, or nested holds
-- would deadlock.
-- KEYS[1] to KEYS[3], ARGV[1] see owner.lua  KEYS[5] with an id: the ids
-- KEYS[4] the reader's timeout key for this hold: Redisson's readers look for it when they leave
-- KEYS[6] its first timeout key, if that is another: it is there however many holds a named owner has
-- ARGV[2] the lease in ms and 1, see clock.lua  ARGV[3] id of the hold, see acquire.lua of rlock; ''
-- ARGV[4] read holds of it that this session has  ARGV[5] write holds; both left out with the rest if none
-- ARGV[6] id of the first write hold of a private owner, which gets it now; ''
-- ARGV[7] what stands in front of the owner in its entry; '' or left out: it does not wait in the line; b: it polls, and
--   ARGV[8] is its session, ARGV[9] in how many ms it comes again, ARGV[10] for how many ms before that a writer is to
--   leave the lock to it; or
-- ARGV[8] 1: the session may listen to the lock's channel  ARGV[9] what makes a session's channel of its id
-- ARGV[10] counts  ARGV[11] for how many ms it waits  ARGV[12] how many callers of it wait; left out: as before
-- Returns {1, holds, 0, 1}: granted; 1: short for {1, 1, 0, 1}; {-1, 0, 0, 0}: those holds are gone
--   {0, ms, 0, 0}: refused; PTTL, or what is left of a writer's mark; {0, ms, Redis's time in ms, position}: it stands in
--   the line; ms is -1 if it is not the first or second, and was not called. The owner who is inside may follow, and then
--   for how many ms
-- Publishes the messages of line.lua, and that of wanted.lua where the caller is the first of the readers
local call = redis.call
local id, before, across = ARGV[3] ~= '' and ARGV[3], ARGV[4] or '0', ARGV[5] or '0'
if before == '0' and across == '0' and call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) == 0
    and not (id and call('EXISTS', KEYS[5]) == 1) then
  -- Free, no writer waits, and nothing is left of an earlier life.
  local lock, readers, owner, left = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
  local clock = call('TIME')
  if id then call('SADD', KEYS[5], 'r' .. ARGV[3]) end -- before the hold, to end that by
  call('HSET', lock, 'mode', 'read', owner, '1')
  call('PEXPIRE', lock, left)
  call('ZADD', readers, string.format('%d', clock[1] * 1000 + clock[2] / 1000 + left), owner)
  call('PEXPIRE', readers, left)
  if id then call('PEXPIRE', KEYS[5], left) end
  call('SET', KEYS[4], '1', 'PX', left)
  return 1
end
local LINE = KEYS[3]
-- include owner, still_in, no_lock, mark, inside, wanted, gate
local entry = (ARGV[7] or '') ~= '' and ARGV[7] ~= 'b' and ARGV[7] .. ARGV[1]
local marks = redis.pcall('EXISTS', LINE) == 0 and {} or redis.pcall('ZMSCORE', LINE, 'm', 't', entry or '')
local counted = id and redis.pcall('SISMEMBER', KEYS[5], 'r' .. id)
bad = bad or refused(marks) or refused(counted)
if bad then return bad end
if (reads <= 0 and before ~= '0') or (writes <= 0 and across ~= '0') then return {-1, 0, 0, 0} end
-- The owner's holds, of other sessions or Redisson's, may be over, though they are still there. (Without holds of this
-- session KEYS[4] is the owner's first timeout key.)
if mode == 'read' and reads > 0 and before == '0' and (expiry or 0) <= now and still_in(string.sub(KEYS[4], 1, -2), reads) <= 0 then
  reads = 0
end
if reads <= 0 and writes <= 0 then
  local size = redis.call('HLEN', KEYS[1])
  local free = size == 0 or (mode and size == 1) -- the mode alone is what a broken client left
  -- A writer's, another kind of lock, or none at all.
  local none = not free and ((no_lock()) or mode ~= 'read' and {0, redis.call('PTTL', KEYS[1]), 0, 0, inside()})
  local mark = not none and marks[1]
  if mark and marked_until(mark) > now and not (entry and may_come(marks[3], now, marks[2], ARGV[11])) then
    local left = math.min(marked_until(mark) - now, redis.call('PTTL', LINE))
    if free and left > 1000 then -- which is the least that short_mark_end leaves
      left = math.min(left, short_mark_end(now) - now)
      redis.pcall('ZADD', LINE, int(MARKED + now + left), 'm')
    end
    none = {0, left, 0, 0}
  end
  if none and not none.err and ARGV[7] == 'b' then
    book(':' .. ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10]), now)
  elseif none and not none.err and entry then
    local refused, since, first = wait_for_writers(entry, now, clock[1] * 1000000 + clock[2], ARGV[8] == '1', ARGV[12],
      marks[3], marks[2])
    if not refused then -- else it waits, without memory or beside what is no line, as others than the line's sessions do
      if first and mode == 'write' then wanted(none[5], ARGV[9]) end
      none = {0, first and none[2] or -1, now, since, none[5], none[5] and none[2]}
    end
  end
  if none then return none end
  if id then redis.call('DEL', KEYS[5]) end -- ids of an earlier life
  if fields[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
  if free then
    redis.call('DEL', KEYS[2]) -- readers of an earlier life
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
end
local shared = id and reads > 0 -- others may have holds of this owner, which may be good for longer
if reads <= 0 or counted == 0 then
  if id then redis.call('SADD', KEYS[5], 'r' .. id) end
  expiry = reads > 0 and expiry
  reads = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
end
expiry = math.max(expiry or 0, now + ARGV[2])
redis.call('ZADD', KEYS[2], int(expiry), ARGV[1])
local left = int(expiry - now)
local ttl = int(math.max(redis.call('PTTL', KEYS[1]), expiry - now))
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
if (ARGV[6] or '') ~= '' then redis.call('SADD', KEYS[5], 'w' .. ARGV[6]) end
if ARGV[7] == 'b' then redis.pcall('ZREM', LINE, 'b:' .. ARGV[8]) end -- it hides the bookings behind it
if entry and (marks[1] or marks[2] or marks[3]) then
  come_in(entry, ARGV[9], ARGV[10], now, mode == 'write' or marks[1] and marked_until(marks[1]) > now, marks[2])
end
if id then redis.call('PEXPIRE', KEYS[5], ttl) end
for i = 4, KEYS[6] and 6 or 4, 2 do
  redis.call('SET', KEYS[i], '1', 'PX', shared and math.max(left, redis.call('PTTL', KEYS[i])) or left)
end
return {1, reads, 0, 1}
