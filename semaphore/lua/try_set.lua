-- try_set.lua: makes a counter that does not exist yet. Run twice with the same arguments
-- it gives the same state and reply: the request is remembered, if it made the counter.
--
-- KEYS[1]  the counter: integer
-- KEYS[2]  the request: '1' once it was done; expires
-- ARGV[1]  the value
-- ARGV[2]  channel of the counter
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  for how long the request is remembered from this run on, in ms
-- Returns  1 if this request made it, else 0
--          WRONGTYPE error: nothing was changed
-- Publishes the value if it was made.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local value, request = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
if type(value) == 'table' or type(request) == 'table' then
  return redis.error_reply(wrongtype)
end
if request then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  return 1
end
if value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18) then
  return redis.error_reply(wrongtype .. ': the counter is not an integer')
end
if value then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], '1', 'PX', ARGV[4])
redis.call(ARGV[3], ARGV[2], ARGV[1])
return 1
