-- bury throws out readers of ours whose lease is over, at most so many, and returns how many. One whose owner Redisson
-- shares, and renews, is Redisson's alone from then on. prefix is what the names of timeout keys begin with.
-- (A zset that it has emptied cannot be asked for while the slot moves; nor is anything in it.)
-- include still_in
local function bury(now, most, prefix)
  local dead = redis.pcall('ZRANGEBYSCORE', KEYS[2], '-inf', int(now), 'LIMIT', 0, most)
  if #dead == 0 then return 0 end
  local holds, over = redis.call('HMGET', KEYS[1], unpack(dead)), {}
  for i, owner in ipairs(dead) do
    if still_in(prefix .. owner .. ':rwlock_timeout:', tonumber(holds[i] or 0) or 0) <= 0 then over[#over + 1] = owner end
  end
  if over[1] then redis.call('HDEL', KEYS[1], unpack(over)) end
  redis.call('ZREM', KEYS[2], unpack(dead))
  return #dead
end
-- alive returns for how long in ms Redisson's readers have the lock, when no others are in the hash;
-- nil if none of them lives. Without a bound it is the PTTL of the lock. Only the timeout keys tell,
-- whose names begin with prefix: the one exception to the rule that all keys are in KEYS, for the rest
-- of a name comes from the hash (Redisson does the same). While the slot moves they may be on the other
-- node: only a script may ask for which one of its KEYS is missing, for that does not run then.
local function alive(prefix)
  local longest
  local all = redis.call('HGETALL', KEYS[1])
  for f = 1, #all, 2 do
    local holds = all[f] ~= 'mode' and tonumber(all[f + 1]) or 0
    if holds > 1000 then return redis.call('PTTL', KEYS[1]) end -- not worth the look
    for i = holds, 1, -1 do
      local ttl = redis.call('PTTL', prefix .. all[f] .. ':rwlock_timeout:' .. i)
      if ttl == -1 then return redis.call('PTTL', KEYS[1]) end -- it has no end that is known
      if ttl >= 0 then longest = math.max(longest or 0, ttl) end
    end
  end
  return longest
end
