-- release_write.lua: ends holds of the write side, and takes back acquisitions of it whose
-- outcome is unknown, with the marks that they left.
--
-- If the owner has read holds too, and their lease is not over, the lock becomes a read
-- lock. Either way waiting readers get their chance now: the marks of the writers that
-- wait are taken away, and come back when those are refused again. What has ended already,
-- or belongs to an earlier life of the lock, is not released again: run twice with the
-- same arguments it leaves the same state and the same holds. Only `changed` tells the
-- runs apart.
--
-- KEYS[1]  the lock: hash; deleted when nobody is left
-- KEYS[2]  our readers: zset, owner -> when its holds expire
-- KEYS[3]  marks of waiting writers: zset
-- KEYS[4]  the ids of this owner's holds: set, r<id> and w<id>
-- KEYS[5]  the reader's first timeout key
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  the holds of the write side that this session keeps
-- ARGV[5]  the time to live in ms that all it keeps deserves; 0 leaves it
-- ARGV[6]  the holds of the read side that this session keeps
-- ARGV[7]  how many holds to end
-- ARGV[i]  i > 7: the ids of those; then those of ARGV[4], then those of ARGV[6]; needed
--          only with a time to live
-- Returns  {holds left, changed}; changed is 0 if none of the ids was there
--          WRONGTYPE error: a key that goes along is of another type, nothing was
--          changed. If it is the lock itself, the hold is gone: {0, 0}
-- Publishes '1' on the channel when no writer is left, or when the last mark of a waiting
--          writer is taken away while readers may come in.
local fields = redis.pcall('HMGET', KEYS[1], 'mode', ARGV[1], ARGV[1] .. ':write')
if fields.err then
  return {0, 0}
end
local expiry = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
local marks = redis.pcall('ZCARD', KEYS[3])
local ids = redis.pcall('SCARD', KEYS[4])
if type(expiry) == 'table' or type(marks) == 'table' or type(ids) == 'table' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ended, unmarked = 0, 0
local kept = 8 + ARGV[7]
for i = 8, kept - 1 do
  ended = ended + redis.call('SREM', KEYS[4], 'w' .. ARGV[i])
  unmarked = unmarked + redis.call('ZREM', KEYS[3], ARGV[i])
end
local reads, held = tonumber(fields[2] or 0) or 0, tonumber(fields[3] or 0) or 0
if fields[1] ~= 'write' or held <= 0 or ended == 0 then
  if unmarked > 0 and fields[1] ~= 'write' then
    local mark = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    if not mark[2] or tonumber(mark[2]) <= now then
      redis.call(ARGV[3], ARGV[2], '1')
    end
  end
  return {fields[1] == 'write' and held or 0, 0}
end

-- ours reports whether all of the owner's holds of a side are this session's. Their number
-- alone does not say so: what it keeps may be of an earlier life of the lock.
local function ours(side, count, number, first)
  local all = count == number
  for i = first, first + number - 1 do
    all = all and redis.call('SISMEMBER', KEYS[4], side .. ARGV[i]) == 1
  end
  return all
end

local keep, ttl = tonumber(ARGV[5]), redis.call('PTTL', KEYS[1])
held = math.max(held - ended, 0)
local alone = keep > 0 and ours('w', held, tonumber(ARGV[4]), kept)
expiry = reads > 0 and tonumber(expiry or 0) or 0
if held > 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', -ended)
else
  redis.call('HDEL', KEYS[1], ARGV[1] .. ':write')
end
if reads > 0 and alone and ours('r', reads, tonumber(ARGV[6]), kept + ARGV[4]) and expiry > now + 1 + keep then
  expiry = now + 1 + keep -- all that is left is this session's, and deserves no more
  redis.call('ZADD', KEYS[2], string.format('%.0f', expiry), ARGV[1])
end
if tonumber(ARGV[6]) > 0 and reads > 0 then
  -- Its holder has trusted the lock for as long as the write side was good for.
  local stays = ttl
  if keep > 0 then
    stays = held > 0 and 0 or math.min(keep, ttl)
  end
  if now + 1 + stays > expiry then
    expiry = now + 1 + stays -- see acquire_read.lua
    redis.call('ZADD', KEYS[2], string.format('%.0f', expiry), ARGV[1])
    redis.call('PEXPIRE', KEYS[2], string.format('%.0f', math.max(ttl, expiry - now, 1)))
    redis.call('SET', KEYS[5], '1', 'PX', string.format('%.0f', math.max(expiry - now, 1)))
  end
end
if held > 0 then
  -- Only ever shorter, and only if no other session holds under the same owner.
  local stays = math.max(keep, expiry - now)
  if alone and ttl > stays then
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', stays))
  end
  return {held, 1}
end
if reads > 0 and expiry <= now and (expiry > 0 or redis.call('EXISTS', KEYS[5]) == 0) then
  redis.call('HDEL', KEYS[1], ARGV[1]) -- their lease is over
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('DEL', KEYS[4], KEYS[5])
  reads = 0
end
redis.call('DEL', KEYS[3])
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[4])
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
  if reads > 0 and expiry > now then
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', expiry - now))
  end
end
redis.call(ARGV[3], ARGV[2], '1')
return {0, 1}
