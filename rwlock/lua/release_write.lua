-- release_write.lua: ends holds of the write side, and takes back acquisitions of it whose outcome is
-- unknown, with their entries in the line. If the owner has read holds too, and their lease is not
-- over, the lock becomes a read lock. Either way waiting readers get their chance now; where there are none
-- the first writer is given the lock: see writers.lua.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[10] (none is left out), ARGV[15] and more, Returns: see ending.lua
-- ARGV[11] what stands in front of the owner in its entry, which may be in the line; '': none
-- ARGV[12] the entry that the session enters anew, or ''
-- ARGV[13] 1: the session may listen to the lock's channel  ARGV[14] how many of its callers wait; 0: as before
-- Publishes '1' when no writer is left, and '0' behind it if that may have been heard: a waiter of
--   Redisson that is just asking takes no notice of the first, and would sleep until the lease that it
--   saw ends. '1' alone when the last waiting writer leaves the line while readers may come in; and
--   the messages of line.lua
if ARGV[6] == '2' and ARGV[11] == '' and redis.call('EXISTS', KEYS[3]) == 0 and redis.pcall('HLEN', KEYS[1]) == 2
    and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 1 then
  -- The mode and the write side of this owner are all there is, and nobody waits in the line.
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[5] or KEYS[1])
  local receivers = redis.call(ARGV[3], ARGV[2], '1')
  if receivers == 0 and ARGV[4] == '1' then return 0 end
  redis.call(ARGV[3], ARGV[2], '0')
  return ARGV[4] == '1' and receivers or -1
end
local LINE, IDS = KEYS[3], 15
-- include ending, still_in
at.listens = ARGV[13] == '1'
local ended = take_out('w', writes, reads, kept)
if ARGV[11] ~= '' and waits then
  if leave_line(ARGV[11] .. ARGV[1], at, now) and mode ~= 'write' then
    open_gate(READ, at.prefix, at.counts, now)
    publish('1')
  end
  heads, booking = entries(0) -- another may be the first now
end
if writes <= 0 or ended == 0 then
  if writes <= 0 and reads <= 0 then remove(ids) end -- of a life of the lock that is over
  if go_on(true) then return {writes, 0, -1, -1, now} end
  return {writes, 0, -1}
end
local held = math.max(writes - ended, 0)
local ttl = (held > 0 or reads > 0) and redis.call('PTTL', KEYS[1]) or 0
local alone = keep > 0 and (private or each('SISMEMBER', ids, 'w', kept, others - 1) == held)
if held > 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', -ended)
else
  redis.call('HDEL', KEYS[1], ARGV[1] .. ':write')
end
local ours = reads > 0 and alone and (private or each('SISMEMBER', ids, 'r', others, #ARGV) == reads) -- all that is left
-- For how long Redisson's read holds of the owner, if it shares that, need the lock.
local theirs = reads > 0 and not private and not ours and still_in(string.sub(KEYS[4], 1, -2), reads) or 0
local before = reads > 0 and expiry or 0
expiry = ours and math.min(before, now + 1 + keep) or before
if tonumber(ARGV[8]) > 0 and reads > 0 then
  -- Its holder has trusted the lock for as long as the write side was good for.
  expiry = math.max(expiry, now + 1 + (keep == 0 and ttl or held > 0 and 0 or math.min(keep, ttl)))
end
if expiry ~= before then redis.call('ZADD', KEYS[2], int(expiry), ARGV[1]) end
if expiry < before and redis.call('PTTL', KEYS[4]) > expiry - now then redis.call('PEXPIRE', KEYS[4], int(expiry - now)) end
if expiry > before then
  redis.call('PEXPIRE', KEYS[2], int(math.max(ttl, expiry - now, 1)))
  redis.call('SET', KEYS[4], '1', 'PX', int(math.max(expiry - now, 1, private and 0 or redis.call('PTTL', KEYS[4]))))
end
if held > 0 then
  -- Only ever shorter: unlocking one hold never lengthens the lease of another.
  local stays = math.max(keep, expiry - now, theirs)
  if alone and ttl > stays then redis.call('PEXPIRE', KEYS[1], int(stays)) end
  return {held, 1, -1}
end
if reads > 0 and expiry <= now and theirs <= 0 and redis.call('PTTL', KEYS[4]) <= (expiry > 0 and 0 or -2) then
  redis.call('HDEL', KEYS[1], ARGV[1]) -- their lease is over
  redis.call('ZREM', KEYS[2], ARGV[1])
  remove(KEYS[4], ids)
  reads = 0
end
local next, given, more, marked
local readers, readers_ms = 0, 0
if waits then readers, readers_ms = open_gate(READ, at.prefix, at.counts, now) end
if redis.call('HLEN', KEYS[1]) == 1 then
  if readers > 0 then
    local booked = booking and due(booking, now)
    next, more = call_writer(at, now, math.max(readers_ms + 1, booked or 0))
    marked = next and not booked
    if marked then keep_out(1000 + readers_ms, now) end
  else
    next, more, given = let_writer_in(heads, booking, at, now, 1)
  end
  if not given then
    redis.call('DEL', KEYS[1])
    remove(KEYS[2])
  end
  remove(ids)
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
  if reads > 0 and expiry > now then redis.call('PEXPIRE', KEYS[1], int(math.max(expiry - now, theirs))) end
  next, more = call_writer(at, now, 0)
end
local receivers = -1
if not given then
  receivers = publish('1')
  if receivers ~= 0 then publish('0') end
  if receivers >= 0 then receivers = math.max(receivers, readers) end
  if waits then
    if not marked then redis.pcall('ZREM', LINE, 'm') end
    sweep()
  end
end
local position, us = more and -1 or 0, clock[1] * 1000000 + clock[2]
if next and ARGV[12] ~= '' and not enter(ARGV[12], us, us, now, at.listens, ARGV[14]) then position = us end
if next or more then return {0, 1, receivers, position, now} end
return {0, 1, receivers}
