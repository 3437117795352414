-- drain.lua: sets a counter to 0 and tells what it had. What is added after that must not be taken
-- by a copy that comes late: a request that found nothing is remembered too.
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4] see counter.lua; the outcome is what it found
-- Returns the value before, in decimal digits; '0' if the counter does not exist
-- include counter
renew()
if outcome then return outcome end
value = value or '0'
local _, bad = change(value, value ~= '0' and 'DECRBY', value)
return bad or value
