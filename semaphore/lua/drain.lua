-- drain.lua: sets a counter to 0 and tells what it had. Run twice with the same arguments
-- it gives the same reply and takes nothing more: the request is remembered, unless there
-- was nothing to drain.
--
-- KEYS[1], KEYS[2]  see counter.lua; the request is what it found
-- ARGV[1]  for how long the request is remembered
-- Returns  the value before, in decimal digits; '0' if the counter does not exist
--          WRONGTYPE error: nothing was changed
-- Publishes nothing.
-- include counter
if request or not value or value == '0' then
  return request or '0'
end
redis.call('DECRBY', KEYS[1], value)
redis.call('SET', KEYS[2], value, 'PX', memory)
return value
