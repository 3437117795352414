-- take.lua: takes n from a counter, if it has as many.
--
-- Run twice with the same arguments it gives the same state, and the same reply but for
-- `changed`: the request is remembered. One that was refused leaves nothing.
--
-- KEYS[1]  the counter: integer
-- KEYS[2]  the request: what it took, or 'undone'; expires
-- ARGV[1]  n
-- ARGV[2]  for how long the request is remembered from this run on, in ms
-- Returns  {1, -1, 0, changed, free, -1}  granted; the counter has free left
--          {0, -1, 0, 0, free, -1}  it has less than n, or the request was undone
--          WRONGTYPE error     nothing was changed
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local value, request = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
if type(value) == 'table' or type(request) == 'table' then
  return redis.error_reply(wrongtype)
end
local integer = value and (value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18
local free = integer and tonumber(value) or 0
if request then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
  return {request == 'undone' and 0 or 1, -1, 0, 0, free, -1}
end
if value and not integer then
  return redis.error_reply(wrongtype .. ': the counter is not an integer')
end
if free < tonumber(ARGV[1]) then
  return {0, -1, 0, 0, free, -1}
end
free = redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {1, -1, 0, 1, free, -1}
