-- counter.lua: not a script of its own, but how the scripts of a counter begin. Those that
-- change it do so once: the request is remembered.
--
-- KEYS[1]  the counter: integer; keeps a TTL if it has one
-- KEYS[2]  the request: what was done; expires
-- The last of ARGV is for how long the request is remembered from this run on, in ms.
-- include refused, integer
local value, request = redis.pcall('GET', KEYS[1]), KEYS[2] and redis.pcall('GET', KEYS[2])
local memory = ARGV[#ARGV]
local bad = type(value) == 'table' and refused(value) or type(request) == 'table' and refused(request)
if bad then
  return bad
elseif request then
  redis.call('PEXPIRE', KEYS[2], memory)
elseif value and not integer(value) then
  return (refused({err = 'not an integer'}, ': the counter is not an integer'))
end
