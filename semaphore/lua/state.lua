-- state.lua: how many permits are free, and what the limit is.
-- KEYS[1], KEYS[2] see permits.lua  KEYS[3] see no_counter.lua
-- KEYS[4] with ARGV[5]: the line  ARGV[1] the limit, should the semaphore not exist  ARGV[2] channel
-- ARGV[3] publish  ARGV[4] counts  ARGV[5] what makes a session's channel of its id; '': there is no line
-- Returns {free, limit}; free is below 0 while more are taken than the limit allows
-- Publishes how many permits are free, if some are and permits had expired; and the
--   messages of line.lua.
local LINE = ARGV[5] ~= '' and KEYS[4]
-- include no_counter, clock, permits, keep, serve
if not value then return {ARGV[1] - taken, tonumber(ARGV[1])} end
if back > 0 then
  local limit = value + taken
  value = let_in(value, limit, {channel = ARGV[2], publish = ARGV[3], counts = ARGV[4], prefix = ARGV[5]})
  if value > 0 then redis.call(ARGV[3], ARGV[2], int(value)) end
  return {value, limit}
end
return {value, value + taken}
