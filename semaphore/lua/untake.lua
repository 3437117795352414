-- untake.lua: gives back what take.lua took for a request, should it have run, and sees
-- to it that it takes nothing should it run later. Run twice it leaves the same state.
--
-- KEYS[1]  the counter: integer; not made anew if it was deleted
-- KEYS[2]  the request: what it took; becomes 'undone', which expires
-- ARGV[1]  channel of the counter
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  for how long the request is remembered from this run on, in ms
-- Returns  {0, changed}; changed is 0 if nothing was given back
-- Publishes the new value, or 0 if it is below 0, if something was given back.
local value, request = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
if type(request) == 'table' then
  return {0, 0} -- nobody's request
end
redis.call('SET', KEYS[2], 'undone', 'PX', ARGV[3])
if not request or request == 'undone' then
  return {0, 0}
end
if type(value) ~= 'string' or not (value == '0' or string.match(value, '^-?[1-9]%d*$')) or #value > 18 then
  return {0, 0} -- the counter that it was taken from is gone
end
value = redis.call('INCRBY', KEYS[1], request)
redis.call(ARGV[2], ARGV[1], string.format('%.0f', math.max(value, 0)))
return {0, 1}
