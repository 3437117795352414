-- Whom a script calls where more sessions that are dead stand in front of a line than it looks at, see line.lua.
-- include line
-- call_newest calls the one that came last, of those who hear it: from low to high, or of all that were not passed over.
-- Each attempt of that one looks at more.
local function call_newest(prefix, ms, low, high)
  for _, entry in ipairs(redis.call('ZREVRANGEBYSCORE', LINE, high or '(' .. int(PASSED), low or '0', 'LIMIT', 0, 16)) do
    if (call(prefix, entry, ms) or 0) > 0 then return end
  end
end

-- call_when_it_ends has the newest of the line come when the lock ends, which stands.
local function call_when_it_ends(prefix)
  call_newest(prefix, int(math.max(0, redis.call('PTTL', KEYS[1])) + 1))
end

-- call_others has n entries with scores from low to high come in ms, of those who hear it. The first skip of them were called
-- before. It tries the 16 behind these, and then the newest. Where channels are sharded it is not known who hears: it calls one.
local function call_others(n, low, high, skip, prefix, publish, ms)
  local most = publish == 'SPUBLISH' and 1 or 16
  local others = redis.call('ZRANGEBYSCORE', LINE, low, high, 'LIMIT', skip, most)
  for i = 1, #others do
    if (call(prefix, others[i], ms) or 0) > 0 then n = n - 1 end
    if n == 0 then return end
  end
  if #others == 16 then call_newest(prefix, ms, low, high) end
end
