-- waiters.lua: how many wait. Read-only.
--
-- KEYS[1]  until when each waiter keeps its place: sorted set, place -> ms, Redis's time
-- Returns  the number of waiters that keep their places
--          WRONGTYPE error
-- Publishes nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local n = redis.pcall('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf')
if type(n) == 'table' then
  return redis.error_reply("WRONGTYPE Operation against a key holding the wrong kind of value: the waiters' heartbeats")
end
return n
