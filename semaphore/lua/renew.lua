-- renew.lua: keeps the permits of many owners for at least one more lease. Safe to run
-- any number of times.
--
-- KEYS       for each owner two: see permits.lua
-- ARGV[1]    lease in ms; 0 only asks
-- ARGV[1+i]  '<n>:<owner>', for the permits '<owner>:1' to '<owner>:<n>'; or '', which
--            stands for the same as the argument before it
-- Returns    for each ARGV[1+i] 1, or 0 if one of the permits has expired or is gone, or
--            the semaphore is
-- Publishes nothing.
-- include clock, int
local lease = tonumber(ARGV[1])
local expiry = now + 1 + lease
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
    for k = 1, alive * n do
      if expires(taken, owner .. ':' .. k) <= now then
        alive = 0
        break
      end
    end
    for k = 1, lease > 0 and alive * n or 0 do
      if expires(taken, owner .. ':' .. k) < expiry then
        redis.call('ZADD', taken, int(expiry), owner .. ':' .. k)
      end
    end
  end
  reply[i - 1] = alive
end
return reply
