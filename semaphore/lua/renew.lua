-- renew.lua: keeps the permits of many requests for at least one more lease. Safe to run
-- any number of times. It is not refused for want of memory.
--
-- KEYS       for each request two: see permits.lua
-- ARGV[1]    lease in ms; 0 only asks
-- ARGV[i]    for each request n; for how many ms from now the semaphore is to be kept at least,
--            0 if it has no end; and the n ids of its permits
-- Returns    for each of the args after the first 1, or 0 if one of the permits of the request
--            has expired or is gone, or the semaphore is; -1 if Redis does not allow the question
-- Publishes nothing.
-- include clock, int, refused
local lease = tonumber(ARGV[1])
local expiry = now + 1 + lease
local unknown -- Redis has refused a command for another reason than the type of the key
local function ask(reply)
  local bad, other = refused(reply)
  unknown = unknown or bad and not other
  return reply
end
local function expires(key, id) -- 0 if it is not there; an error is a table
  return tonumber(ask(redis.pcall('ZSCORE', key, id)) or 0) or 0
end
local reply, i, key = {}, 2, 1
while i <= #ARGV do
  local free, taken, last = KEYS[key], KEYS[key + 1], i + 1 + ARGV[i]
  unknown = nil
  local alive = type(ask(redis.pcall('GET', free))) == 'string' and 1 or 0
  for k = i + 2, alive == 1 and last or 0 do
    if expires(taken, ARGV[k]) <= now then
      alive = 0
      break
    end
  end
  if lease > 0 and alive == 1 then
    redis.call('ZREM', taken, '') -- nothing: a script that has written is not refused for want of memory
    for k = i + 2, last do
      if expires(taken, ARGV[k]) < expiry then
        redis.call('ZADD', taken, int(expiry), ARGV[k])
      end
    end
    if ARGV[i + 1] ~= '0' and redis.call('PTTL', free) < tonumber(ARGV[i + 1]) then
      redis.call('PEXPIRE', free, ARGV[i + 1])
      redis.call('PEXPIRE', taken, ARGV[i + 1])
    end
  end
  for k = i, last do
    reply[k - 1] = unknown and -1 or alive
  end
  i, key = last + 1, key + 2
end
return reply
