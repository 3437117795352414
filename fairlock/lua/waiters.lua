-- waiters.lua: how many wait. Read-only.
--
-- KEYS[1]  when each waiter was last heard of: sorted set, place -> ms, Redis's time
-- ARGV[1]  ms after its last sign of life in which a waiter keeps its place
-- Returns  the number of waiters that keep their places
--          WRONGTYPE error
-- Publishes nothing.
local time = redis.call('TIME')
local since = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1]
local n = redis.pcall('ZCOUNT', KEYS[1], string.format('(%.0f', since), '+inf')
if type(n) == 'table' then
  return redis.error_reply("WRONGTYPE Operation against a key holding the wrong kind of value: the waiters' heartbeats")
end
return n
