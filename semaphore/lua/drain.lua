-- drain.lua: sets a counter to 0 and tells what it had. Run twice with the same arguments
-- it gives the same reply and takes nothing more: the request is remembered, unless there
-- was nothing to drain.
--
-- KEYS[1]  the counter: integer; keeps a TTL if it has one
-- KEYS[2]  the request: what it found; expires
-- ARGV[1]  for how long the request is remembered from this run on, in ms
-- Returns  the value before, in decimal digits; '0' if the counter does not exist
--          WRONGTYPE error: nothing was changed
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local value, request = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
if type(value) == 'table' or type(request) == 'table' then
  return redis.error_reply(wrongtype)
end
if request then
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
  return request
end
if value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18) then
  return redis.error_reply(wrongtype .. ': the counter is not an integer')
end
if not value or tonumber(value) == 0 then
  return '0'
end
redis.call('DECRBY', KEYS[1], value)
redis.call('SET', KEYS[2], value, 'PX', ARGV[1])
return value
