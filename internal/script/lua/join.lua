-- What a fair entry needs besides, in order to come into the line. It needs line. tail is the last entry of the
-- line that was not passed over, and its position; empty if there is none.

-- joins says whether the callers of an entry have come into another one of their session, up to a number: that
-- has them already, or is the last of the line.
local function joins(other, tail, last, now, waiting)
  if other == '' then return false end
  local known = redis.call('ZMSCORE', LINE, other, '#' .. other)
  if not known[1] then return false end
  if (known[2] or NUMBER + 1) - NUMBER < last then
    if tail[1] ~= other then return false end
    redis.call('ZADD', LINE, int(NUMBER + last), '#' .. other, int(WAITING + waiting), 'w' .. other)
  end
  redis.call('ZADD', LINE, 'LT', int(ALIVE - now - number(other, 9, 15)), 's' .. session_of(other))
  return true
end

-- last_of_line returns the tail.
local function last_of_line()
  return redis.pcall('ZREVRANGEBYSCORE', LINE, '(' .. int(PASSED), '0', 'WITHSCORES', 'LIMIT', 0, 1)
end

-- behind returns the position of an entry that is new: the one that it had before, or the end of the line.
local function behind(before, tail, us)
  return before > 0 and before or math.max(us, (tonumber(tail[2]) or 0) + 1)
end
