-- include int
-- keep sees to it that both keys of a semaphore end together, if they have an end: where ms is not 0, not before ms from
-- now, for which the permits are to be kept at least. If only_longer is true, one that has no end stays as it is.
local function keep(ms, only_longer)
  local ttl = redis.call('PTTL', KEYS[1])
  if only_longer and ttl < 0 then return end
  if ms > 0 and ttl < ms then
    ttl = ms
    redis.call('PEXPIRE', KEYS[1], int(ms))
  end
  if ttl > 0 then
    redis.call('PEXPIRE', KEYS[2], int(ttl))
  elseif redis.call('PTTL', KEYS[2]) > 0 then -- the end was taken away
    redis.call('PERSIST', KEYS[2])
  end
end
