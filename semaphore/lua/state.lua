-- state.lua: how many permits are free, and what the limit is.
-- KEYS[1], KEYS[2] see permits.lua  KEYS[3] see no_counter.lua
-- ARGV[1] the limit, should the semaphore not exist  ARGV[2] channel  ARGV[3] publish
-- Returns {free, limit}; free is below 0 while more are taken than the limit allows
-- Publishes how many permits are free, if some are and permits had expired.
-- include no_counter, clock, permits
if not value then return {ARGV[1] - taken, tonumber(ARGV[1])} end
if back > 0 then
  value = redis.call('INCRBY', KEYS[1], int(back))
  if value > 0 then redis.call(ARGV[3], ARGV[2], int(value)) end
end
return {value, value + taken}
