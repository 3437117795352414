-- release_read.lua: ends holds of the read side, and takes back acquisitions of it whose
-- outcome is unknown.
--
-- It looks at no other reader of ours, so it costs the same however many there are. Whoever
-- leaves as the last of ours looks at Redisson's, as those do at each unlock. What has
-- ended already, or belongs to an earlier life of the lock, is not released again: run
-- twice with the same arguments it leaves the same state and the same holds. Only
-- `changed` tells the runs apart.
--
-- KEYS[1]  the lock: hash; deleted when nobody is left
-- KEYS[2]  our readers: zset, owner -> when its holds expire
-- KEYS[3]  marks of waiting writers: zset
-- KEYS[4]  the ids of this owner's holds: set, r<id> and w<id>
-- KEYS[5]  the reader's first timeout key
-- KEYS[i]  i > 5: its further ones
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  the holds of the read side that this session keeps
-- ARGV[5]  the time to live in ms that all it keeps deserves; 0 leaves it
-- ARGV[6]  the holds of the write side that this session keeps
-- ARGV[7]  how many holds to end
-- ARGV[i]  i > 7: the ids of those; then those of ARGV[4], then those of ARGV[6]; needed
--          only with a time to live
-- Returns  {holds left, changed}; changed is 0 if none of the ids was there
--          WRONGTYPE error: a key that goes along is of another type, nothing was
--          changed. If it is the lock itself, the hold is gone: {0, 0}
-- Publishes '0' on the channel when the lock became free, or when a waiting writer must find
--          out whether Redisson's readers live.
-- include alive.lua
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
local ended = 0
local kept = 8 + ARGV[7]
for i = 8, kept - 1 do
  ended = ended + redis.call('SREM', KEYS[4], 'r' .. ARGV[i])
end
local held, writes = tonumber(fields[2] or 0) or 0, tonumber(fields[3] or 0) or 0
if fields[1] ~= 'read' and (fields[1] ~= 'write' or writes <= 0) then
  held = 0 -- a writer's, or another kind of lock: whatever stands there is no hold
end
if held <= 0 then
  -- The hash was deleted under it; what went along with it goes too.
  redis.call('ZREM', KEYS[2], ARGV[1])
  for i = 5, #KEYS do
    redis.call('DEL', KEYS[i])
  end
  return {0, 0}
end
if ended == 0 then
  return {held, 0}
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- ours reports whether all of the owner's holds of a side are this session's. Their number
-- alone does not say so: what it keeps may be of an earlier life of the lock.
local function ours(side, count, number, first)
  local all = count == number
  for i = first, first + number - 1 do
    all = all and redis.call('SISMEMBER', KEYS[4], side .. ARGV[i]) == 1
  end
  return all
end

local keep = tonumber(ARGV[5])
held = math.max(held - ended, 0)
local alone = keep > 0 and ours('r', held, tonumber(ARGV[4]), kept)
if held == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  if writes <= 0 then
    redis.call('DEL', KEYS[4])
  end
else
  redis.call('HINCRBY', KEYS[1], ARGV[1], -ended)
  -- Only ever shorter: unlocking one hold never lengthens the lease of another. And only
  -- if no other session holds under the same owner.
  if alone and expiry and now + 1 + keep < tonumber(expiry) then
    expiry = now + 1 + keep -- see acquire_read.lua
    redis.call('ZADD', KEYS[2], string.format('%.0f', expiry), ARGV[1])
  else
    keep = 0
  end
end
for i = 5, #KEYS do
  if i - 4 > held then
    redis.call('DEL', KEYS[i])
  elseif keep > 0 and redis.call('PTTL', KEYS[i]) > keep then
    redis.call('PEXPIRE', KEYS[i], keep)
  end
end
if held > 0 and expiry and tonumber(expiry) > now then
  -- The keys that stay may be those of shorter leases; one that lives as long as the
  -- reader speaks for all.
  redis.call('SET', KEYS[5], '1', 'PX', string.format('%.0f', tonumber(expiry) - now))
end
if fields[1] == 'write' then
  -- The TTL is the writer's: it shrinks to what he deserves if all that is left is this session's.
  local stays = tonumber(ARGV[5])
  if alone and ours('w', writes, tonumber(ARGV[6]), kept + ARGV[4]) and redis.call('PTTL', KEYS[1]) > stays then
    redis.call('PEXPIRE', KEYS[1], stays)
  end
  return {held, 1}
end

-- Some of those whose lease is over go too, so that the dead do not pile up.
local dead = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 8)
for _, owner in ipairs(dead) do
  if owner ~= ARGV[1] then
    redis.call('HDEL', KEYS[1], owner)
    redis.call('ZREM', KEYS[2], owner)
  end
end
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if held == 0 and last[2] and tonumber(last[2]) <= now then
  -- None of ours lives: the rest of the dead go too, or who waits would not be told. Each
  -- of them costs that once.
  repeat
    dead = redis.call('ZRANGE', KEYS[2], 0, 499)
    if #dead > 0 then
      redis.call('HDEL', KEYS[1], unpack(dead))
      redis.call('ZREM', KEYS[2], unpack(dead))
    end
  until #dead < 500
end
local others, ours = redis.call('HLEN', KEYS[1]) - 1, redis.call('ZCARD', KEYS[2])
local left = 0 -- ms until the last of those who are left is over; 0: not known
if others > 0 and ours == 0 and held == 0 then
  if marks == 0 then -- the key of the marks is missing, see alive.lua
    left = alive(string.sub(KEYS[5], 1, #KEYS[5] - #(ARGV[1] .. ':rwlock_timeout:1')))
    if not left then
      others = 0
    end
  else
    redis.call(ARGV[3], ARGV[2], '0')
  end
end
if others == 0 then
  redis.call('DEL', KEYS[1], KEYS[2])
  -- The writers that wait have a moment to come, before readers that arrived later. It is
  -- short, since they may have died.
  if redis.call('PTTL', KEYS[3]) > 1000 then
    redis.call('PEXPIRE', KEYS[3], 1000)
  end
  redis.call(ARGV[3], ARGV[2], '0')
  return {0, 1}
end
if ours == others then
  left = redis.call('HEXISTS', KEYS[1], last[1]) == 1 and last[2] - now or 0
end
-- The lock need not outlive the last of them.
if left > 0 and redis.call('PTTL', KEYS[1]) > left then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', left))
end
return {held, 1}
