-- count.lua: what a latch holds. Read-only.
--
-- KEYS[1]  the latch: integer, no TTL
-- Returns  the count in decimal digits; '0' if the latch is open
--          WRONGTYPE error
-- Publishes nothing.
-- include latch
return value or '0'
