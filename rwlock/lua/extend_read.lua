-- extend_read.lua: gives an owner's holds of the read side a new end. Run twice it sets
-- the same end, counted from the later run.
--
-- The end moves closer only if every hold of the owner on this side is one of this
-- session's. Their number alone does not say so: where an owner is shared the lock may
-- have been lost, and what is counted now may be what another process holds.
--
-- KEYS[1]  the lock: hash
-- KEYS[2]  our readers: zset, owner -> when its holds expire
-- KEYS[3]  the ids of this owner's holds: set
-- KEYS[i]  i > 3: the reader's timeout keys
-- ARGV[1]  owner
-- ARGV[2]  time to live in ms, from now
-- ARGV[3]  the holds of this session, for which the end may also move closer; 0: only
--          further away
-- ARGV[i]  i > 3: the ids of this session's holds
-- Returns  1, or 0 if this session does not hold it (any more)
--          WRONGTYPE error: a key that goes along is of another type
-- Publishes nothing.
local fields = redis.pcall('HMGET', KEYS[1], 'mode', ARGV[1], ARGV[1] .. ':write')
if fields.err then
  return 0
end
local held = tonumber(fields[2] or 0) or 0
if held <= 0 or not (fields[1] == 'read' or (fields[1] == 'write' and fields[3])) then
  return 0
end
local expiry = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
local ids = redis.pcall('SCARD', KEYS[3])
if type(expiry) == 'table' or type(ids) == 'table' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local there = 0
for i = 4, #ARGV do
  there = there + redis.call('SISMEMBER', KEYS[3], 'r' .. ARGV[i])
end
if there == 0 then
  return 0 -- what is counted belongs to a later life of the lock
end
local ours = held == tonumber(ARGV[3]) and there == held
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local stays = now + 1 + ARGV[2] -- see acquire_read.lua
if not ours then
  stays = math.max(stays, tonumber(expiry or 0))
end
redis.call('ZADD', KEYS[2], string.format('%.0f', stays), ARGV[1])
for i = 4, #KEYS do
  redis.call('SET', KEYS[i], '1', 'PX', string.format('%.0f', stays - now))
end
-- The lock itself moves closer only if all who hold it are ours.
local ttl = redis.call('PTTL', KEYS[1])
if fields[1] == 'read' and redis.call('ZCARD', KEYS[2]) == redis.call('HLEN', KEYS[1]) - 1 then
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if redis.call('HEXISTS', KEYS[1], last[1]) == 1 then
    ttl = last[2] - now
  end
end
ttl = string.format('%.0f', math.max(ttl, stays - now))
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
redis.call('PEXPIRE', KEYS[3], ttl)
return 1
