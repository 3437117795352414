-- take.lua: takes n from a counter, if it has as many.
--
-- Run twice with the same arguments it gives the same state, and the same reply but for
-- `changed`: the request is remembered. One that was refused leaves nothing.
--
-- KEYS[1], KEYS[2]  see counter.lua; the request is what it took, or 'undone'
-- ARGV[1]  n
-- ARGV[2]  for how long the request is remembered
-- Returns  {1, -1, 0, changed, free, -1}  granted; the counter has free left
--          {0, -1, 0, 0, free, -1}  it has less than n, or the request was undone
--          WRONGTYPE error     nothing was changed
-- Publishes nothing.
-- include counter
local free = tonumber(value or 0) or 0
if request then
  return {request == 'undone' and 0 or 1, -1, 0, 0, free, -1}
elseif free < tonumber(ARGV[1]) then
  return {0, -1, 0, 0, free, -1}
end
free = redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', memory)
return {1, -1, 0, 1, free, -1}
