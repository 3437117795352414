-- count.lua: the value of a counter. Read-only.
--
-- KEYS[1]  the counter: integer
-- KEYS[2]  '{NAME}:timeout': it exists while permits of a Semaphore of that name are taken
-- Returns  the value in decimal digits; '0' if the counter does not exist
--          WRONGTYPE error
-- Publishes nothing.
-- include value
return value or '0'
