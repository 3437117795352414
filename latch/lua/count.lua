-- count.lua: what a latch holds. Read-only.
-- KEYS[1] see request.lua
-- Returns the count in decimal digits; '0' if the latch is open
-- include value
return value or '0'
