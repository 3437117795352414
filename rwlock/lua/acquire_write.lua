-- acquire_write.lua: one more hold of the write side for an owner.
--
-- A writer is alone, but for read holds of its own taken later. Readers of ours whose
-- lease is over are thrown out here. Only if none of ours is left, and others are, those
-- are Redisson's, and alive.lua tells whether they live. (Of who enters anew the key of his
-- ids is missing, as that asks for.)
-- Each hold has an id; run twice with the same arguments it gives the same state and the
-- same reply.
--
-- KEYS[1]  the lock: hash, mode -> read or write, owner -> holds of the read side,
--          owner:write -> holds of the write side
-- KEYS[2]  our readers: zset, owner -> when its holds expire, in ms of server time
-- KEYS[3]  marks of waiting writers: zset, id of the attempt -> when the mark expires
-- KEYS[4]  the ids of this owner's holds: set, r<id> and w<id>; lives with them
-- ARGV[1]  owner
-- ARGV[2]  lease in ms
-- ARGV[3]  holds of the write side that this session has of it already
-- ARGV[4]  the same of the read side
-- ARGV[5]  id of the hold
-- ARGV[6]  who is refused by readers leaves a mark, since he looks again within half of
--          this many ms; 0: he will not wait, and leaves none
-- ARGV[7]  what the names of timeout keys begin with
-- Returns  {1, holds, 0, 1}    granted; the TTL is at least the lease
--          {0, ms, 0, 0}       refused: PTTL, or until the last reader's lease ends; -1
--                              if nobody knows
--          {-1, 0, 0, 0}       the holds of ARGV[3] or ARGV[4] are gone: lost
--          {-2, 1, 0, 0}       the owner has the read side alone: never
--          WRONGTYPE error     nothing was changed
-- Publishes nothing.
-- include alive.lua
local fields = redis.pcall('HMGET', KEYS[1], 'mode', ARGV[1], ARGV[1] .. ':write')
local expiry = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
local mark = redis.pcall('ZSCORE', KEYS[3], ARGV[5])
local counted = redis.pcall('SISMEMBER', KEYS[4], 'w' .. ARGV[5])
if fields.err or type(expiry) == 'table' or type(mark) == 'table' or type(counted) == 'table' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mode, reads, held = fields[1], tonumber(fields[2] or 0) or 0, tonumber(fields[3] or 0) or 0
if mode ~= 'write' then
  held = 0
end
if mode ~= 'read' and held <= 0 then
  reads = 0 -- a writer's, or another kind of lock: whatever stands there is no hold
end
if (held <= 0 and tonumber(ARGV[3]) > 0) or (reads <= 0 and tonumber(ARGV[4]) > 0) then
  return {-1, 0, 0, 0}
end

-- readers throws out what is over, and returns for how long others keep the lock: ms, or
-- nil if nobody does.
local function readers()
  local dead
  repeat
    dead = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 500)
    if #dead > 0 then
      redis.call('HDEL', KEYS[1], unpack(dead))
      redis.call('ZREM', KEYS[2], unpack(dead))
    end
  until #dead < 500
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  while last[1] and redis.call('HEXISTS', KEYS[1], last[1]) == 0 do -- of an earlier life
    redis.call('ZREM', KEYS[2], last[1])
    last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  end
  if last[1] then
    return last[2] - now
  end
  if redis.call('HLEN', KEYS[1]) == 1 then
    return nil
  end
  return alive(ARGV[7])
end

if held <= 0 then
  if reads > 0 and (tonumber(ARGV[4]) > 0 or not expiry or tonumber(expiry) > now) then
    return {-2, 1, 0, 0}
  end
  if mode == 'read' then
    local left = readers()
    if left then
      if tonumber(ARGV[6]) > 0 then
        -- Alive until he has surely looked again, in time or when the last reader ends.
        local live = tonumber(ARGV[6])
        if left >= 0 then
          live = math.min(live, 2 * left)
        end
        live = live + 1000
        redis.call('ZADD', KEYS[3], string.format('%.0f', now + live), ARGV[5])
        redis.call('PEXPIRE', KEYS[3], string.format('%.0f', math.max(redis.call('PTTL', KEYS[3]), live)))
      end
      return {0, left, 0, 0}
    end
  elseif redis.call('EXISTS', KEYS[1]) == 1 and not (mode and redis.call('HLEN', KEYS[1]) == 1) then
    return {0, redis.call('PTTL', KEYS[1]), 0, 0} -- a writer's, or another kind of lock
  end
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[4]) -- what is left of an earlier life
  redis.call('HSET', KEYS[1], 'mode', 'write')
end

if held <= 0 or counted == 0 then
  redis.call('SADD', KEYS[4], 'w' .. ARGV[5])
  held = redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', 1)
end
redis.call('ZREM', KEYS[3], ARGV[5])
local ttl = string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[4], ttl)
return {1, held, 0, 1}
