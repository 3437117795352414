-- try_set.lua: makes a counter that does not exist yet. Run twice with the same arguments
-- it gives the same state and reply: the request is remembered, if it made the counter.
--
-- KEYS[1], KEYS[2]  see counter.lua
-- ARGV[1]  the value
-- ARGV[2]  channel of the counter
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  for how long the request is remembered
-- Returns  1 if this request made it, else 0
--          WRONGTYPE error: nothing was changed
-- Publishes the value if it was made.
-- include counter
if request or value then
  return request and 1 or 0
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], '1', 'PX', memory)
redis.call(ARGV[3], ARGV[2], ARGV[1])
return 1
