-- acquire_read.lua: one more hold of the read side for an owner.
--
-- Readers share the lock. Who comes from outside waits while a writer holds it, or while
-- the mark of a waiting writer is live: else readers that arrive without end would keep
-- him out. An owner that is in already comes in always, or nested holds would deadlock.
-- Each hold has an id; run twice with the same arguments it gives the same state and the
-- same reply.
--
-- KEYS[1]  the lock: hash, mode -> read or write, owner -> holds of the read side,
--          owner:write -> holds of the write side
-- KEYS[2]  our readers: zset, owner -> when its holds expire, in ms of server time
-- KEYS[3]  marks of waiting writers: zset, id of the attempt -> when the mark expires
-- KEYS[4]  the ids of this owner's holds: set, r<id> and w<id>; lives with them
-- KEYS[5]  the reader's timeout key, for the hold that is taken: Redisson's readers
--          look for it when they leave
-- KEYS[6]  optional: its first one, if that is another: it lives as long as the reader, and
--          is there however the holds of a shared owner are counted
-- ARGV[1]  owner
-- ARGV[2]  lease in ms
-- ARGV[3]  holds of the read side that this session has of it already
-- ARGV[4]  the same of the write side
-- ARGV[5]  id of the hold
-- Returns  {1, holds, 0, 1}    granted
--          {0, ms, 0, 0}       refused: PTTL, or what is left of a writer's mark
--          {-1, 0, 0, 0}       the holds of ARGV[3] or ARGV[4] are gone: lost
--          WRONGTYPE error     nothing was changed
-- Publishes nothing.
local fields = redis.pcall('HMGET', KEYS[1], 'mode', ARGV[1], ARGV[1] .. ':write')
local expiry = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
local mark = redis.pcall('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local counted = redis.pcall('SISMEMBER', KEYS[4], 'r' .. ARGV[5])
if fields.err or type(expiry) == 'table' or mark.err or type(counted) == 'table' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mode, held, writes = fields[1], tonumber(fields[2] or 0) or 0, tonumber(fields[3] or 0) or 0
if mode ~= 'write' then
  writes = 0
end
if mode ~= 'read' and writes <= 0 then
  held = 0 -- a writer's, or another kind of lock: whatever stands there is no hold
end
if (held <= 0 and tonumber(ARGV[3]) > 0) or (writes <= 0 and tonumber(ARGV[4]) > 0) then
  return {-1, 0, 0, 0}
end

if mode == 'read' and tonumber(ARGV[3]) == 0 then
  -- The owner's holds, of other sessions, may be over, though nobody has thrown them out.
  -- Where the score has gone with its key, a reader's first timeout key is KEYS[5].
  if expiry and tonumber(expiry) <= now or not expiry and redis.call('EXISTS', KEYS[5]) == 0 then
    held = 0
  end
end

if held <= 0 and writes <= 0 then
  -- A hash with the mode alone is what a broken client left: nobody holds it.
  local alone = mode and redis.call('HLEN', KEYS[1]) == 1
  if mode ~= 'read' and not alone and redis.call('EXISTS', KEYS[1]) == 1 then
    return {0, redis.call('PTTL', KEYS[1]), 0, 0} -- a writer's, or another kind of lock
  end
  if mark[2] and tonumber(mark[2]) > now then
    if (not mode or alone) and redis.call('PTTL', KEYS[3]) > 1000 then
      redis.call('PEXPIRE', KEYS[3], 1000) -- the lock is free: they have a moment, if they live
    end
    return {0, math.min(mark[2] - now, redis.call('PTTL', KEYS[3])), 0, 0}
  end
  redis.call('DEL', KEYS[4]) -- ids of an earlier life
  redis.call('HDEL', KEYS[1], ARGV[1])
  if not mode or alone then
    redis.call('DEL', KEYS[2]) -- readers of an earlier life
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
end

if held <= 0 or counted == 0 then
  redis.call('SADD', KEYS[4], 'r' .. ARGV[5])
  local was = held
  held = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  if was <= 0 then
    expiry = 0
  end
end
-- A ms that has begun counts as over: no lease ends before its time.
expiry = math.max(tonumber(expiry or 0), now + 1 + ARGV[2])
redis.call('ZADD', KEYS[2], string.format('%.0f', expiry), ARGV[1])
local left = string.format('%.0f', expiry - now)
local ttl = string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), expiry - now))
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
redis.call('PEXPIRE', KEYS[4], ttl)
for i = 5, #KEYS do
  redis.call('SET', KEYS[i], '1', 'PX', left)
end
return {1, held, 0, 1}
