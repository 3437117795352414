-- add.lua: adds to a counter, or takes away without asking whether it has as much. Run
-- twice with the same arguments it gives the same state: the request is remembered.
--
-- KEYS[1], KEYS[2]  see counter.lua; the counter is made if it is not there
-- ARGV[1]  how much; may be below 0
-- ARGV[2]  channel of the counter
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  for how long the request is remembered
-- Returns  changed: 1, or 0 if an earlier run has done it
--          WRONGTYPE error: nothing was changed
-- Publishes the new value, or 0 if it is below 0.
-- include counter
if request then
  return 0
end
value = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], '1', 'PX', memory)
redis.call(ARGV[3], ARGV[2], string.format('%.0f', math.max(value, 0)))
return 1
