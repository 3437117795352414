-- acquire.lua: gives a request permits, all or none. One that is there already is not taken again.
-- KEYS[1], KEYS[2] see permits.lua  ARGV[1] lease in ms  ARGV[2] the limit of a new semaphore
-- ARGV[3] channel  ARGV[4] publish  ARGV[5] see keep.lua
-- ARGV[6] 1: the reply tells when the next of all expires; 0: it need not  ARGV[7] and more: the ids
-- Returns {1, ms, 0, changed, free, -1}: granted, for the lease at least; free are left (below 0: the
--   limit was lowered), and the next of all expires in ms (-1: none)
--   free: short for that, if no others are taken or ARGV[6] is 0; -ms: short for that, of free 0
--   {0, ms, 0, 0, free, limit}: not enough are free; {-2, limit, 0, 0}: the limit is less than that
-- Publishes how many permits are free, if some are, and permits had expired or the semaphore is new.
local n, value, at = #ARGV - 6, redis.pcall('GET', KEYS[1]), redis.call('TIME')
local ends, free, added = redis.call('PTTL', KEYS[2]), tonumber(value) or 0, 0
-- Mostly enough are free, none expires within this second, and the semaphore has no end. What Redis
-- does not take for an integer it refuses to count down. (It is slow to write a score into a reply.)
if free >= n and value >= '1' and free < 1e15 and ARGV[5] == '0'
    and redis.call('PTTL', KEYS[1]) == -1 and (ends == -2
    or ends == -1 and redis.pcall('ZCOUNT', KEYS[2], '-inf', at[1] .. '999') == 0) then
  free = redis.pcall('DECRBY', KEYS[1], n == 1 and '1' or n)
  if type(free) == 'number' then
    local expiry = string.format('%d', at[1] * 1000 + at[2] / 1000 + 1 + ARGV[1])
    for i = 7, #ARGV do
      local one = redis.pcall('ZADD', KEYS[2], 'NX', expiry, ARGV[i])
      if type(one) == 'table' then -- this user may not: then not even the first
        redis.call('INCRBY', KEYS[1], n)
        return one
      end
      added = added + one
    end
    if added == n and (ends == -2 or ARGV[6] == '0') then return free end
    if added == n then
      local lowest = redis.call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')
      local ms = lowest[2] - at[1] * 1000 - math.floor(at[2] / 1000)
      return free == 0 and -ms or {1, ms, 0, 1, free, -1}
    end
    redis.call('INCRBY', KEYS[1], n - added) -- an earlier run has taken them
  end
end
-- include clock, keep, permits
local expiry = now + 1 + ARGV[1]
local new, tell = not value, back > 0 or not value
if new then
  value = tonumber(ARGV[2]) - taken -- permits of one whose counter was deleted still count
elseif back > 0 then
  value = redis.call('INCRBY', KEYS[1], int(back))
end
local alive = 0 -- of those that an earlier run has granted
for i = 7, redis.call('ZSCORE', KEYS[2], ARGV[7]) and #ARGV or 0 do
  alive = alive + (redis.call('ZSCORE', KEYS[2], ARGV[i]) and 1 or 0)
end
local granted, limit = alive == n or value >= n, value + taken
if not granted and n > limit then
  if tell and not new and value > 0 then redis.call(ARGV[4], ARGV[3], int(value)) end
  return {-2, limit, 0, 0}
end
if new then redis.call('SET', KEYS[1], int(value)) end
if granted then
  if alive < n then value = redis.call('DECRBY', KEYS[1], int(n - alive)) end
  for i = 7, #ARGV do
    local one = redis.pcall('ZADD', KEYS[2], 'GT', int(expiry), ARGV[i]) -- never sooner
    if type(one) == 'table' then
      redis.call('INCRBY', KEYS[1], int(n - alive))
      return one
    end
    added = added + one
  end
  keep(tonumber(ARGV[5]))
end
if tell and value > 0 then redis.call(ARGV[4], ARGV[3], int(value)) end
local lowest = redis.call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')
local ms = (tonumber(lowest[2] or 0) or 0) - now
if ms <= 0 or ms + now >= 922337203685477 then ms = -1 end -- Redisson's expiry of one without a lease
return {granted and 1 or 0, ms, 0, added > 0 and 1 or 0, value, granted and -1 or limit}
