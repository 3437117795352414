-- acquire.lua: gives an owner n permits of a semaphore, all or none.
--
-- Run twice with the same arguments it gives the same state, and the same reply but for
-- `changed`: a permit that is there already is not taken again. Free and taken permits
-- always add up to the limit.
--
-- KEYS[1]  the free permits: integer; below 0 while more are taken than the limit allows
-- KEYS[2]  the taken permits: sorted set, permit id -> expiry in ms since 1970
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
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local function int(n) return string.format('%.0f', n) end
local value, taken = redis.pcall('GET', KEYS[1]), redis.pcall('ZCARD', KEYS[2])
if type(value) == 'table' or type(taken) == 'table' then
  return redis.error_reply(wrongtype)
end
if value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18) then
  return redis.error_reply(wrongtype .. ': the number of free permits is not an integer')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
-- now is cut to whole milliseconds: without the one added a lease could be that much short.
local n, expiry = tonumber(ARGV[2]), now + tonumber(ARGV[3]) + 1

-- Expired permits come back. ZREMRANGEBYSCORE counts them, however many there are; a list
-- of them would be too long for Lua from about 8000 on.
local back = redis.call('ZREMRANGEBYSCORE', KEYS[2], '0', int(now))
taken = taken - back
local tell = back > 0 or not value
local new = not value
if new then
  -- Permits of a semaphore whose counter was deleted still count against the limit.
  value = tonumber(ARGV[4]) - taken
else
  value = tonumber(value)
  if back > 0 then
    value = redis.call('INCRBY', KEYS[1], int(back))
  end
end

local alive = 0
if redis.call('ZSCORE', KEYS[2], ARGV[1] .. ':1') then -- an earlier run has granted
  for i = 1, n do
    if redis.call('ZSCORE', KEYS[2], ARGV[1] .. ':' .. i) then
      alive = alive + 1
    end
  end
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
    local id = ARGV[1] .. ':' .. i
    if (tonumber(redis.call('ZSCORE', KEYS[2], id) or 0) or 0) < expiry then -- never sooner
      added = added + redis.call('ZADD', KEYS[2], int(expiry), id)
    end
  end
  if added > 0 then
    value = redis.call('DECRBY', KEYS[1], int(added))
  end
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then -- somebody gave the semaphore an end: both keys have it
    redis.call('PEXPIRE', KEYS[2], int(ttl))
  elseif redis.call('PTTL', KEYS[2]) > 0 then -- and then took it away
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
