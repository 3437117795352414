-- permits.lua: how scripts begin that count permits: expired ones come back; limit: free + taken.
-- KEYS[1] the free permits: integer; below 0 while more are taken than the limit allows
-- KEYS[2] the taken permits: sorted set, permit id -> expiry in ms since 1970
-- value is how many are free, nil for a semaphore that does not exist; back is how many came back,
-- which are in value; taken is how many are taken now. The script has now, Redis's time.
-- include value, int
local taken = redis.pcall('ZCARD', KEYS[2])
if type(taken) == 'table' then return (refused(taken)) end
-- A list of what has expired would be too long for Lua from about 8000 on.
local back = taken > 0 and redis.call('ZCOUNT', KEYS[2], '0', int(now)) or 0
taken, value = taken - back, value and tonumber(value) or nil
if back > 0 then
  -- They are counted first: by a user who may not, what is taken out would be lost for good.
  redis.call('ZREM', KEYS[2], '') -- nothing: a script that has written is not refused for want of memory
  value = value and redis.call('INCRBY', KEYS[1], int(back))
  local gone = redis.pcall('ZREMRANGEBYSCORE', KEYS[2], '0', int(now))
  if type(gone) == 'table' then
    if value then redis.call('INCRBY', KEYS[1], int(-back)) end
    return gone
  end
end
