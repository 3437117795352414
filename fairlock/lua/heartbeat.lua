-- heartbeat.lua: a sign of life of waiters, which keeps their places; and, should the lock be
-- free (its lease has ended, or the waiter that it was given to did not come), the next one is
-- let in. Safe to run any number of times.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5]: see grant.lua
-- ARGV[6]  1: these waiters cannot be told anything
-- ARGV[i]  i > 6: places
-- Returns  for each place 0: it is not in the queue (any more), or its owner has the lock:
--          ask by acquire.lua; or the ms after which to come again at the latest, -1:
--          unknown; and behind those Redis's time in ms
--          WRONGTYPE error: nothing was changed
-- Publishes 'grant:<now>:<token>:<id>' on the channel of the session whose waiter is let
--          in, unless its place is among those of ARGV.
-- include grant
local bad = unusable()
if bad then
  return bad
end
local mine = {}
for i = 7, #ARGV do
  if redis.call('ZSCORE', KEYS[2], ARGV[i]) then
    heard(ARGV[i], ARGV[6])
    mine[ARGV[i]] = true
  end
end
keep()
local place = redis.call('EXISTS', KEYS[1]) == 0 and grant(mine)
if place then
  mine[place] = nil
end
local stuck = redis.call('EXISTS', KEYS[1]) == 0 -- the next cannot be let in, and is told why when it asks
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
local reply = {}
for i = 7, #ARGV do
  local _, _, _, owner = parse(ARGV[i])
  local asks = stuck or not mine[ARGV[i]] or redis.call('HEXISTS', KEYS[1], owner) == 1
  reply[#reply + 1] = asks and 0 or ARGV[i] == first and left() or -1
end
reply[#reply + 1] = now
return reply
