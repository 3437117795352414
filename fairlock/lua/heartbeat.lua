-- heartbeat.lua: a sign of life of a session, which keeps its entries; and, should the lock be free
-- (its lease has ended, or the session that it was given to did not come), the next run is let in.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5] see grant.lua
-- ARGV[6] session  ARGV[7] what KEYS[3] says of it, but for the time  ARGV[8] and more: its entries
-- Returns for each entry the ms after which to come again at the latest, -1: unknown, 0: ask by
--   acquire.lua, for it is not in the queue or has the lock; and last Redis's time in ms
-- Publishes the message of grant.lua, unless the entry that is let in is among those of ARGV
-- include refused, clock, grant
local held = redis.pcall('HLEN', KEYS[1])
local bad = refused(held, ': the lock') or refused(redis.pcall('ZCARD', KEYS[2]), ': the queue')
  or refused(redis.pcall('HLEN', KEYS[3]), ': what is known of the queue')
if bad then return bad end
local mine = {}
for i = 8, #ARGV do
  if redis.call('ZSCORE', KEYS[2], ARGV[i]) and redis.call('HEXISTS', KEYS[3], ARGV[i]) == 1 then
    mine[ARGV[i]] = true
  end
end
if next(mine) then
  local ttl = math.max(redis.call('PTTL', KEYS[3]), 2 * ARGV[5]) -- first: it needs no memory
  redis.call('PEXPIRE', KEYS[3], string.format('%.0f', ttl))
  redis.call('HSET', KEYS[3], 's' .. ARGV[6], ARGV[7] .. string.format('%.0f', now + ARGV[5]))
  keep()
end
local given = held == 0 and grant(mine)
if given then mine[given] = nil end
local stuck = held == 0 and not given -- the next cannot be let in, and is told why when it asks
local reply, first = {}, redis.call('ZRANGE', KEYS[2], 0, 0)[1]
for i = 8, #ARGV do
  local entry, ms = ARGV[i], -1
  local cut = 5 + (tonumber(string.sub(entry, 1, 5)) or 0)
  local named = string.sub(entry, cut + 1, cut + 1) == '#'
  if stuck or not mine[entry]
      or named and redis.call('HEXISTS', KEYS[1], (owner_of(entry, cut, true))) == 1 then
    ms = 0
  elseif entry == first then
    ms = redis.call('PTTL', KEYS[1])
    ms = ms == -2 and 1 or ms -- where time passes inside a script (miniredis) the lock may have ended
  end
  reply[#reply + 1] = ms
end
reply[#reply + 1] = now
return reply
