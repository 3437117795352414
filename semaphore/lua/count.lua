-- count.lua: the value of a counter. Read-only.
--
-- KEYS[1]  see counter.lua
-- Returns  the value in decimal digits; '0' if the counter does not exist
--          WRONGTYPE error
-- Publishes nothing.
-- include counter
return value or '0'
