-- try_set.lua: makes a counter that does not exist yet.
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4] see counter.lua; the outcome is the reply
-- ARGV[5] the value  ARGV[6] channel  ARGV[7] publish  ARGV[8] counts
-- ARGV[9] what makes a session's channel of its id; '': there is no line  KEYS[4] with ARGV[9]: the line
-- Returns 1 if this request made it, else 0
-- Publishes the value if it was made; and the messages of line.lua.
local LINE = ARGV[9] ~= '' and KEYS[4]
-- include counter, serve
if outcome then
  renew()
  return tonumber(outcome)
end
local _, bad = change(value and '0' or '1', not value and 'SET', ARGV[5])
if bad or value then return bad or 0 end
let_in(tonumber(ARGV[5]), math.huge, {channel = ARGV[6], publish = ARGV[7], counts = ARGV[8], prefix = ARGV[9]})
redis.call(ARGV[7], ARGV[6], ARGV[5])
return 1
