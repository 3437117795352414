-- all_ours reports whether all n readers in the hash are ours, and good for no more than so many ms. A reader whose owner
-- Redisson shares may be good for longer; it has several holds. prefix is what the names of timeout keys begin with.
-- That KEYS[2] has as many does not tell: a hash that was deleted, and made anew by Redisson, leaves readers of its earlier life there until
-- their sessions ask. So each is looked at, for callers that would cut the lock's TTL: a rare case.
-- Of more than 1000 that would take too long: then the TTL stays, until fewer are left.
-- include still_in
local function all_ours(n, ms, prefix)
  if n < 1 or n > 1000 or redis.call('ZCARD', KEYS[2]) ~= n then return false end
  local readers = redis.call('ZRANGE', KEYS[2], 0, -1)
  for i, holds in ipairs(redis.call('HMGET', KEYS[1], unpack(readers))) do
    if not holds then return false end
    holds = tonumber(holds) or 0
    if holds > 1 and still_in(prefix .. readers[i] .. ':rwlock_timeout:', holds) > ms + 1 then return false end
  end
  return true
end
