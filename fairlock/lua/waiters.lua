-- waiters.lua: how many wait. Read-only.
--
-- KEYS[1]  until when each waiter keeps its place: sorted set, place -> ms, Redis's time
-- Returns  the number of waiters that keep their places
--          WRONGTYPE error
-- Publishes nothing.
-- include refused, clock
local n = redis.pcall('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf')
return refused(n, ": the waiters' heartbeats") or n
