-- delete_counter.lua: deletes a counter. A copy that comes late deletes nothing.
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4] see counter.lua
-- Returns changed: 1, or 0 if an earlier run has done it
-- include counter
renew()
if outcome then return 0 end
local _, bad = change('1', 'DEL')
return bad or 1
