-- try_set.lua: makes a counter that does not exist yet.
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4] see counter.lua; the outcome is the reply
-- ARGV[5] the value  ARGV[6] channel  ARGV[7] publish
-- Returns 1 if this request made it, else 0
-- Publishes the value if it was made.
-- include counter
if outcome then
  renew()
  return tonumber(outcome)
end
local _, bad = change(value and '0' or '1', not value and 'SET', ARGV[5])
if bad or value then return bad or 0 end
redis.call(ARGV[7], ARGV[6], ARGV[5])
return 1
