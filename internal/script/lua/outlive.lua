-- outlive sees to it that a key lives for so many ms longer than a lock that lives for ttl ms; it has
-- no end without ms. Its end never moves closer: an earlier holder may need it for longer.
local function outlive(key, ttl, ms)
  if ms and redis.call('PTTL', key) < ttl + ms then
    redis.call('PEXPIRE', key, string.format('%.0f', ttl + ms))
  end
end
