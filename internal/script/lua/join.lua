-- What a fair entry needs besides, in order to come into the line. It needs line.

-- joins says whether the callers of an entry have come into another one of their session, up to a number: that
-- has them already, or is the last of the line.
local function joins(other, last, now, waiting)
  if other == '' then return false end
  local known = redis.call('ZSCORE', KEYS[2], '#' .. other)
  if not known then return false end
  if known - NUMBER < last then
    local tail = redis.call('ZREVRANGEBYSCORE', KEYS[2], '(' .. int(PASSED), '0', 'LIMIT', 0, 1)
    if tail[1] ~= other then return false end
    redis.call('ZADD', KEYS[2], int(NUMBER + last), '#' .. other, int(WAITING + waiting), 'w' .. other)
  end
  redis.call('ZADD', KEYS[2], 'LT', int(ALIVE - now - number(other, 9, 15)), 's' .. session_of(other))
  return true
end

-- behind returns the position of an entry that is new: the one that it had before, or the end of the line.
local function behind(before, us)
  if before > 0 then return before end
  local tail = redis.call('ZREVRANGEBYSCORE', KEYS[2], '(' .. int(PASSED), '0', 'WITHSCORES', 'LIMIT', 0, 1)
  return math.max(us, (tonumber(tail[2]) or 0) + 1)
end
