-- try_set.lua: makes a counter that does not exist yet.
--
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4]  see counter.lua; the outcome is the reply
-- ARGV[5]  the value
-- ARGV[6], ARGV[7]  channel of the counter, and PUBLISH or SPUBLISH
-- Returns  1 if this request made it, else 0
-- Publishes the value if it was made.
-- include counter
if outcome then
  renew()
  return tonumber(outcome)
end
local made = value and '0' or '1'
local _, bad = change(made, not value and 'SET', ARGV[5])
if not value and not bad then
  redis.call(ARGV[7], ARGV[6], ARGV[5])
end
return bad or tonumber(made)
