-- renew.lua: keeps the permits of many owners for at least one more lease. Safe to run
-- any number of times.
--
-- KEYS       for each owner two: the free permits (integer), and the taken permits
--            (sorted set, permit id -> expiry in ms since 1970)
-- ARGV[1]    lease in ms; 0 only asks
-- ARGV[1+i]  '<n>:<owner>', for the permits '<owner>:1' to '<owner>:<n>'; or '', which
--            stands for the same as the argument before it
-- Returns    for each ARGV[1+i] 1, or 0 if one of the permits has expired or is gone, or
--            the semaphore is
-- Publishes nothing.
local lease = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
-- A millisecond more, since now is cut to whole ones.
local expiry = string.format('%.0f', now + lease + 1)
local function expires(key, id) -- 0 if it is not there; an error is a table
  return tonumber(redis.pcall('ZSCORE', key, id) or 0) or 0
end
local reply, set, alive = {}, 0, 0
for i = 2, #ARGV do
  local n, owner = string.match(ARGV[i], '^(%d+):(.*)$')
  if n then
    set = set + 1
    local free, taken = KEYS[2 * set - 1], KEYS[2 * set]
    alive = type(redis.pcall('GET', free)) == 'string' and 1 or 0
    for k = 1, alive * tonumber(n) do
      if expires(taken, owner .. ':' .. k) <= now then
        alive = 0
        break
      end
    end
    for k = 1, alive * tonumber(n) do
      if lease > 0 and expires(taken, owner .. ':' .. k) < tonumber(expiry) then
        redis.call('ZADD', taken, expiry, owner .. ':' .. k)
      end
    end
  end
  reply[i - 1] = alive
end
return reply
