-- acquire.lua: takes the fair lock if it is the caller's turn, counts one more hold of an
-- owner that has it, or puts the caller in the queue.
--
-- Run twice with the same arguments it gives the same state and the same reply: an id
-- that is there already is not counted again, a place that is taken stays where it is.
-- A place that was given up, or lost by silence, is taken anew, at the end.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5]: see grant.lua
-- ARGV[6]   owner
-- ARGV[7]   lease in ms
-- ARGV[8]   holds that this session has of it already (0: none that could be lost)
-- ARGV[9]   id of the hold
-- ARGV[10]  1: the caller wants a fencing token
-- ARGV[11]  place in the queue; '' for a caller that does not wait
-- ARGV[12]  1: the caller cannot be told anything
-- Returns  {1, holds, token or 0, 1}     granted; the TTL is at least the lease
--          {0, ms, Redis's time in ms, 0}  not yet; ms: ask again then at the latest, -1:
--                                        unknown
--          {-1, 0, 0, 0}                 the holds of ARGV[8] are gone: lost
--          WRONGTYPE error               nothing was changed
-- Publishes 'grant:<now>:<token>:<id>' on the channel of the session whose waiter is let
--          in, if that is another one.
-- include grant
local bad = unusable()
if bad then
  return bad
end
local owner, before, id, fenced, place = ARGV[6], tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11]
if fenced == '1' and not countable() then
  return (refused({err = 'not an integer'}, ': the fencing token is not an integer that can be counted up'))
end
local held = tonumber(redis.call('HGET', KEYS[1], owner) or 0) or 0

if held > 0 then
  local counted = redis.call('SISMEMBER', KEYS[4], id) == 1
  local token = 0
  if fenced == '1' then -- a named owner that comes back into its own lock keeps its token
    token = before > 0 and not counted and draw(fenced) or redis.call('GET', KEYS[5]) or 0
  end
  if not counted then
    held = redis.call('HINCRBY', KEYS[1], owner, 1)
    redis.call('SADD', KEYS[4], id)
  end
  local ttl = ARGV[7]
  if held > 1 or not counted or redis.call('PTTL', KEYS[1]) > math.ceil(ARGV[5] / 4) then
    -- (Else it is this hold's alone, and no more than a grant to be taken up.)
    ttl = int(math.max(redis.call('PTTL', KEYS[1]), tonumber(ttl)))
  end
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[4], ttl)
  if place ~= '' then
    forget(place)
  end
  return {1, held, tonumber(token), 1}
elseif before > 0 then
  return {-1, 0, 0, 0}
end

-- take makes the caller the owner.
local function take()
  local token = draw(fenced)
  enter(owner, id, ARGV[7])
  return {1, 1, tonumber(token), 1}
end

local free = redis.call('EXISTS', KEYS[1]) == 0
if place == '' then
  if free and not (redis.call('EXISTS', KEYS[2]) == 1 and grant({})) then
    return take()
  end
  return {0, left(), now, 0}
end
if free and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('ZREM', KEYS[3], place) -- it may have waited in a queue that was deleted
  return take()
end

if not redis.call('ZSCORE', KEYS[2], place) then
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', KEYS[2], int((last or 0) + 1), place)
end
heard(place, ARGV[12])
keep()
if free and grant({[place] = true}) == place then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('PEXPIRE', KEYS[4], ARGV[7])
  return {1, 1, fenced == '1' and tonumber(redis.call('GET', KEYS[5])) or 0, 1}
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1] == place
return {0, first and left() or -1, now, 0}
