-- acquire_read.lua: one more hold of the read side for an owner.
--
-- Readers share the lock. A reader from outside waits while a writer holds it, or while
-- the mark of a waiting writer is live: else readers that arrive without end would keep the
-- writer out. An owner that is in already always gets in, or nested holds would deadlock.
--
-- KEYS[1], KEYS[2], KEYS[3], ARGV[1]: see owner.lua
-- KEYS[4]  marks of waiting writers: zset, id of the attempt -> when the mark expires
-- KEYS[5]  the reader's timeout key, for the hold that is taken: Redisson's readers
--          look for it when they leave
-- KEYS[6]  optional: its first one, if that is another: it lives as long as the reader, and
--          is there however the holds of a named owner are counted
-- ARGV[2]  lease in ms
-- ARGV[3]  holds of the read side that this session has of it already
-- ARGV[4]  the same of the write side
-- ARGV[5]  id of the hold; '' for the first one of a private owner: no other session knows that
--          owner, so the hold is there or not
-- ARGV[6]  the lease and 1 ms, see clock.lua
-- Returns  1                   granted: {1, 1, 0, 1}
--          {1, holds, 0, 1}    granted
--          {0, ms, 0, 0}       refused: PTTL, or what is left of a writer's mark
--          {-1, 0, 0, 0}       the holds of ARGV[3] or ARGV[4] are gone: lost
--          WRONGTYPE error     nothing was changed; so too for a hash that is no lock
-- Publishes nothing.
local call = redis.call
if ARGV[3] == '0' and ARGV[4] == '0' and call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[4]) == 0 then
  -- Free, and nothing is left of an earlier life. (Redis takes texts much quicker than numbers.)
  local lock, readers, ids, owner, left = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[6]
  local clock = call('TIME')
  call('HSET', lock, 'mode', 'read', owner, '1')
  call('PEXPIRE', lock, left)
  call('ZADD', readers, string.format('%d', clock[1] * 1000 + clock[2] / 1000 + left), owner)
  call('PEXPIRE', readers, left)
  if ARGV[5] ~= '' then
    call('SADD', ids, 'r' .. ARGV[5])
    call('PEXPIRE', ids, left)
  end
  call('SET', KEYS[5], '1', 'PX', left)
  return 1
end

-- include owner, no_lock
local mark = redis.pcall('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local counted = redis.pcall('SISMEMBER', KEYS[3], 'r' .. ARGV[5])
bad = bad or refused(mark) or refused(counted)
if bad then
  return bad
end
if (reads <= 0 and ARGV[3] ~= '0') or (writes <= 0 and ARGV[4] ~= '0') then
  return {-1, 0, 0, 0}
end

-- The owner's holds, of other sessions, may be over, though they are still there. Where
-- the score has gone with its key, a reader's first timeout key is KEYS[5].
if mode == 'read' and reads > 0 and ARGV[3] == '0'
    and (expiry and expiry <= now or not expiry and redis.call('EXISTS', KEYS[5]) == 0) then
  reads = 0
end

if reads <= 0 and writes <= 0 then
  local size = redis.call('HLEN', KEYS[1])
  local free = size == 0 or (mode and size == 1) -- the mode alone is what a broken client left
  local none = not free and (no_lock())
  if none then
    return none
  elseif mode ~= 'read' and not free then
    return {0, redis.call('PTTL', KEYS[1]), 0, 0} -- a writer's, or another kind of lock
  end
  if mark[2] and tonumber(mark[2]) > now then
    if free and redis.call('PTTL', KEYS[4]) > 1000 then
      redis.call('PEXPIRE', KEYS[4], 1000) -- the writers that wait have a moment, if they live
    end
    return {0, math.min(mark[2] - now, redis.call('PTTL', KEYS[4])), 0, 0}
  end
  redis.call('DEL', KEYS[3], free and KEYS[2] or KEYS[3]) -- ids, and readers, of an earlier life
  if fields[2] then
    redis.call('HDEL', KEYS[1], ARGV[1])
  end
  if free then
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
end

if reads <= 0 or (counted == 0 and ARGV[5] ~= '') then
  if ARGV[5] ~= '' then
    redis.call('SADD', KEYS[3], 'r' .. ARGV[5])
  end
  expiry = reads > 0 and expiry
  reads = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
end
expiry = math.max(expiry or 0, now + 1 + ARGV[2])
redis.call('ZADD', KEYS[2], int(expiry), ARGV[1])
local left = int(expiry - now)
local ttl = int(math.max(redis.call('PTTL', KEYS[1]), expiry - now))
for i = 1, 3 do
  redis.call('PEXPIRE', KEYS[i], ttl)
end
for i = 5, #KEYS do
  redis.call('SET', KEYS[i], '1', 'PX', left)
end
return {1, reads, 0, 1}
