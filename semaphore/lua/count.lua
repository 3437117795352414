-- count.lua: the value of a counter. Read-only.
-- KEYS[1], KEYS[2] see counter.lua
-- Returns the value in decimal digits; '0' if the counter does not exist
-- include value, no_permits
return value or '0'
