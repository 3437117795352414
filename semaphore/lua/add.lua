-- add.lua: adds to a counter, or takes away without asking whether it has as much. Run
-- twice with the same arguments it gives the same state: the request is remembered.
--
-- KEYS[1]  the counter: integer; made if it is not there, and keeps a TTL if it has one
-- KEYS[2]  the request: '1' once it was done; expires
-- ARGV[1]  how much; may be below 0
-- ARGV[2]  channel of the counter
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  for how long the request is remembered from this run on, in ms
-- Returns  changed: 1, or 0 if an earlier run has done it
--          WRONGTYPE error: nothing was changed
-- Publishes the new value, or 0 if it is below 0.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local value, request = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
if type(value) == 'table' or type(request) == 'table' then
  return redis.error_reply(wrongtype)
end
if request then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  return 0
end
if value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18) then
  return redis.error_reply(wrongtype .. ': the counter is not an integer')
end
value = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], '1', 'PX', ARGV[4])
redis.call(ARGV[3], ARGV[2], string.format('%.0f', math.max(value, 0)))
return 1
