-- add.lua: adds to a counter, or takes away without asking whether it has as much.
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4] see counter.lua; the counter is made if it is not there
-- ARGV[5] how much; may be below 0  ARGV[6] channel  ARGV[7] publish  ARGV[8] counts
-- ARGV[9] what makes a session's channel of its id; '': there is no line  KEYS[4] with ARGV[9]: the line
-- Returns changed: 1, or 0 if an earlier run has done it
-- Publishes the new value, or 0 if it is below 0; and the messages of line.lua.
local LINE = ARGV[9] ~= '' and KEYS[4]
-- include counter, serve
renew()
if outcome then return 0 end
local now, bad = change('1', 'INCRBY', ARGV[5])
if bad then return bad end
let_in(now, math.huge, {channel = ARGV[6], publish = ARGV[7], counts = ARGV[8], prefix = ARGV[9]})
redis.call(ARGV[7], ARGV[6], string.format('%.0f', math.max(now, 0)))
return 1
