-- include int
-- keep sees to it that both keys of a semaphore end together, if they have an end: where ms is not 0, not before ms from
-- now, for which the permits are to be kept at least. With old this gives no end to one that has none.
local function keep(ms, old)
  local ttl = redis.call('PTTL', KEYS[1])
  if ms > 0 and ttl < ms and (ttl >= 0 or not old) then
    ttl = ms
    redis.call('PEXPIRE', KEYS[1], int(ms))
  end
  if ttl > 0 then
    redis.call('PEXPIRE', KEYS[2], int(ttl))
  elseif redis.call('PTTL', KEYS[2]) > 0 then -- the end was taken away
    redis.call('PERSIST', KEYS[2])
  end
end
