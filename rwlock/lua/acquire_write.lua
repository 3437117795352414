-- acquire_write.lua: one more hold of the write side for an owner. A writer is alone, but for read
-- holds of its own taken later. Readers whose lease is over are thrown out; Redisson's once none of
-- ours is left. (The key of the ids is missing then, as readers.lua asks: the owner is not in yet.)
-- KEYS[1] to KEYS[3], ARGV[1] see owner.lua  KEYS[4] the ids
-- ARGV[2] lease in ms  ARGV[3] id of the hold  ARGV[5] what the names of timeout keys begin with
-- ARGV[4] twice the ms after which a refused writer looks again, for the mark that it leaves; 0: none
-- ARGV[6] write holds of it that this session has  ARGV[7] read holds; both left out if none
-- Returns 1: granted, short for {1, 1, 0, 1}; {1, holds, 0, 1}: granted, for the lease at least
--   {0, ms, 0, 0}: refused; PTTL, or until the last reader's lease ends; -1: not known
--   {-1, 0, 0, 0}: those of ARGV[6] or ARGV[7] are gone; {-2, 1, 0, 0}: it has the read side alone
if not ARGV[6] and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[4]) == 0 then
  local lease = ARGV[2] -- free, and nothing is left of an earlier life
  redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1] .. ':write', '1')
  redis.call('PEXPIRE', KEYS[1], lease)
  redis.call('SADD', KEYS[4], 'w' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[4], lease)
  return 1
end
-- include owner, readers, no_lock
local id, before, across = ARGV[3], ARGV[6] or '0', ARGV[7] or '0'
local mark = redis.pcall('ZSCORE', KEYS[3], id)
local counted = redis.pcall('SISMEMBER', KEYS[4], 'w' .. id)
bad = bad or refused(mark) or refused(counted)
if bad then return bad end
if (writes <= 0 and before ~= '0') or (reads <= 0 and across ~= '0') then return {-1, 0, 0, 0} end
if writes <= 0 then
  if reads > 0 and (across ~= '0' or not expiry or expiry > now) then return {-2, 1, 0, 0} end
  local taken = redis.call('HLEN', KEYS[1]) > (mode and 1 or 0)
  -- A writer's, another kind of lock, or none at all.
  local none = taken and ((no_lock()) or mode ~= 'read' and {0, redis.call('PTTL', KEYS[1]), 0, 0})
  if none then return none end
  local left -- for how long readers keep the lock, in ms
  if taken then
    while bury(now, 500) == 500 do end
    local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    while last[1] and redis.call('HEXISTS', KEYS[1], last[1]) == 0 do -- of an earlier life
      redis.call('ZREM', KEYS[2], last[1])
      last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    end
    left = last[1] and last[2] - now or redis.call('HLEN', KEYS[1]) > 1 and alive(ARGV[5])
  end
  local live = tonumber(ARGV[4])
  if left and live > 0 then
    -- Alive until it has surely looked again, in time or when the last reader ends.
    live = 1000 + (left >= 0 and math.min(live, 2 * left) or live)
    redis.call('ZADD', KEYS[3], int(now + live), id)
    redis.call('PEXPIRE', KEYS[3], int(math.max(redis.call('PTTL', KEYS[3]), live)))
  end
  if left then return {0, left, 0, 0} end
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[4]) -- what is left of an earlier life
  redis.call('HSET', KEYS[1], 'mode', 'write')
end
if writes <= 0 or counted == 0 then
  redis.call('SADD', KEYS[4], 'w' .. id)
  writes = redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', 1)
end
if mark then redis.call('ZREM', KEYS[3], id) end
local ttl = int(math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[4], ttl)
return {1, writes, 0, 1}
