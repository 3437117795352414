-- alive.lua: not a script of its own, but what scripts share that must know whether
-- Redisson's readers live. It stands where those say "include alive.lua".
--
-- Only their timeout keys tell. These are the one exception to the rule that all keys are
-- in KEYS: nobody knows the names before, since they come from the hash. (Redisson does the
-- same.) They are in the slot of the lock. While that slot moves to another node they may
-- be there already: so only a script may ask for which one of its KEYS is missing, for
-- such a script does not run then.

-- alive returns for how long in ms the readers in the hash have the lock, nil if none of
-- them lives. Without a bound it is the PTTL of the lock. prefix is what the names of
-- timeout keys begin with.
local function alive(prefix)
  local longest
  local all = redis.call('HGETALL', KEYS[1])
  for f = 1, #all, 2 do
    local holds = tonumber(all[f + 1])
    if all[f] ~= 'mode' and holds then
      if holds > 1000 then -- not worth the look
        return redis.call('PTTL', KEYS[1])
      end
      for i = holds, 1, -1 do
        local ttl = redis.call('PTTL', prefix .. all[f] .. ':rwlock_timeout:' .. i)
        if ttl == -1 then -- nobody knows until when
          return redis.call('PTTL', KEYS[1])
        end
        if ttl >= 0 then
          longest = math.max(longest or 0, ttl)
        end
      end
    end
  end
  return longest
end
