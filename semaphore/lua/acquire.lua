-- acquire.lua: gives an owner n permits of a semaphore, all or none.
--
-- Run twice with the same arguments it gives the same state, and the same reply but for
-- `changed`: a permit that is there already is not taken again.
--
-- KEYS[1], KEYS[2]  see permits.lua
-- ARGV[1]  owner; its permits are '<owner>:1' to '<owner>:<n>'
-- ARGV[2]  n
-- ARGV[3]  lease in ms
-- ARGV[4]  the limit, should the semaphore not exist yet
-- ARGV[5]  channel of the semaphore
-- ARGV[6]  PUBLISH or SPUBLISH
-- Returns  {1, ms, 0, changed, free, limit}  granted; they expire no sooner than the
--                              lease; free are left (below 0: the limit was lowered), and
--                              the next of all expires in ms (-1: none)
--          {0, ms, 0, 0, free, limit}  not enough are free
--          {-2, limit, 0, 0}   n is more than the limit
--          WRONGTYPE error     nothing was changed
-- Publishes how many permits are free, if some are, and permits had expired or the
--          semaphore is new.
-- include permits
local owner, n, expiry = ARGV[1], tonumber(ARGV[2]), now + 1 + ARGV[3]
local new, tell = not value, back > 0 or not value
if new then
  -- Permits of a semaphore whose counter was deleted still count against the limit.
  value = tonumber(ARGV[4]) - taken
elseif back > 0 then
  value = redis.call('INCRBY', KEYS[1], int(back))
end

local alive = 0 -- those that an earlier run has granted
for i = 1, redis.call('ZSCORE', KEYS[2], owner .. ':1') and n or 0 do
  alive = alive + (redis.call('ZSCORE', KEYS[2], owner .. ':' .. i) and 1 or 0)
end
local granted = alive == n or value >= n
local limit = value + taken
if not granted and n > limit then
  if tell and not new and value > 0 then
    redis.call(ARGV[6], ARGV[5], int(value))
  end
  return {-2, limit, 0, 0}
end
if new then
  redis.call('SET', KEYS[1], int(value))
end
if granted then
  local added = 0
  for i = 1, n do
    local id = owner .. ':' .. i
    if alive == 0 or (tonumber(redis.call('ZSCORE', KEYS[2], id) or 0) or 0) < expiry then -- never sooner
      added = added + redis.call('ZADD', KEYS[2], int(expiry), id)
    end
  end
  if added > 0 then
    value = redis.call('DECRBY', KEYS[1], int(added))
  end
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then -- the semaphore was given an end: both keys have it
    redis.call('PEXPIRE', KEYS[2], int(ttl))
  elseif redis.call('PTTL', KEYS[2]) > 0 then -- which was then taken away
    redis.call('PERSIST', KEYS[2])
  end
end
if tell and value > 0 then
  redis.call(ARGV[6], ARGV[5], int(value))
end
local lowest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local ms = (tonumber(lowest[2] or 0) or 0) - now
if ms <= 0 or ms + now >= 922337203685477 then -- Redisson's expiry of a permit without a lease
  ms = -1
end
return {granted and 1 or 0, ms, 0, granted and alive < n and 1 or 0, value, limit}
