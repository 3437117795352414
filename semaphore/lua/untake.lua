-- untake.lua: gives back what take.lua took for a request, should it have run, and sees
-- to it that it takes nothing should it run later. Run twice it leaves the same state.
--
-- KEYS[1]  the counter: integer; not made anew if it was deleted
-- KEYS[2]  the request: what it took; becomes 'undone', which expires
-- ARGV[1]  channel of the counter
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  1: that tells how many connections have heard it; 0: it counts one node only
-- ARGV[4]  for how long the request is remembered from this run on, in ms
-- Returns  {0, changed, receivers}; changed is 0 if nothing was given back; receivers is
--          how many connections heard of it, -1 if that is not known or nothing was published
-- Publishes the new value, or 0 if it is below 0, if something was given back.
-- include refused, integer
local value, request = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
local bad, gone = refused(request)
if gone then
  return {0, 0, -1} -- no request of ours
elseif not bad then
  bad, gone = refused(value)
end
if bad and not gone then
  return bad
end
redis.call('SET', KEYS[2], 'undone', 'PX', ARGV[4])
if not request or request == 'undone' or type(value) ~= 'string' or not integer(value) then
  return {0, 0, -1} -- nothing was taken, or the counter that it was taken from is gone
end
value = redis.call('INCRBY', KEYS[1], request)
local receivers = redis.call(ARGV[2], ARGV[1], string.format('%.0f', math.max(value, 0)))
return {0, 1, ARGV[3] == '1' and receivers or -1}
