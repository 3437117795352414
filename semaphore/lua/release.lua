-- release.lua: gives back a request's permits, but for those that had expired and others got since.
-- KEYS[1], KEYS[2] see permits.lua; the free permits are not made anew if they are gone
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] counts  ARGV[4] see keep.lua  ARGV[5] and more: the ids
-- Returns receivers, for {0, 1, receivers}; or {0, 0, receivers} if not all were there
-- Publishes how many permits are free, if some are and some were given back.
local value, given = redis.pcall('GET', KEYS[1]), 0
local bad = type(value) == 'table' and value
for i = 5, bad and 0 or #ARGV do
  local removed = redis.pcall('ZREM', KEYS[2], ARGV[i])
  if type(removed) == 'table' then bad = removed else given = given + removed end
end
if value and given > 0 then
  value = redis.pcall('INCRBY', KEYS[1], given == 1 and '1' or given)
  if type(value) == 'number' then
    if ARGV[4] ~= '0' and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then
      redis.call('PEXPIRE', KEYS[1], ARGV[4])
      redis.pcall('PEXPIRE', KEYS[2], ARGV[4]) -- perhaps gone with the last, and the slot moves
    end
    local receivers = value > 0 and redis.call(ARGV[2], ARGV[1], value)
    receivers = ARGV[3] == '1' and receivers or -1
    return given == #ARGV - 4 and receivers or {0, 0, receivers}
  end
  bad = value
end
-- include refused
local answer, gone = refused(bad)
if answer and not gone and given == #ARGV - 4 then
  -- This user may not count them: they come back as permits that have expired.
  for i = 5, #ARGV do redis.pcall('ZADD', KEYS[2], '0', ARGV[i]) end
end
return not gone and answer or {0, 0, -1} -- gone: it was deleted, or is of another type
