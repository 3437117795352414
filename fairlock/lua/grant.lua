-- grant.lua: not a script of its own, but the part that the scripts of the fair lock
-- share: the types of their keys, and how the next waiter is let in.
--
-- KEYS[1]  the lock: hash, owner -> holds, as that of rlock
-- KEYS[2]  the queue: sorted set, place -> number; the lowest is served first
-- KEYS[3]  until when each waiter keeps its place if it is not heard of again: sorted set,
--          place -> ms, Redis's time; and half a ms if it cannot be told anything
-- KEYS[4]  the ids of holds: set, lives and dies with the lock
-- KEYS[5]  the fencing token of owners that want one: an integer without TTL
-- ARGV[1]  channel on which plain waiters listen
-- ARGV[2]  PUBLISH or SPUBLISH, for that channel
-- ARGV[3]  the prefix that makes a session's channel out of a session id
-- ARGV[4]  1: PUBLISH tells how many have received a message; 0: it counts one node only
-- ARGV[5]  the QueueLease of the caller, in ms
-- A place is "<1: fenced, or 0><QueueLease in ms>;<length>:<session><length>:<owner><id of
-- the attempt>". What is silent, and how long a grant waits to be taken up, goes by the
-- QueueLease of the waiter: its session heartbeats in step with that.
-- include refused, clock, int

-- unusable returns an error for the first key that holds something else than it should,
-- and which that is.
local function unusable()
  for i, want in ipairs({'hash', 'zset', 'zset', 'set', 'string'}) do
    if KEYS[i] then
      local kind = redis.call('TYPE', KEYS[i])
      kind = kind.ok or kind
      if kind ~= want and kind ~= 'none' then
        local names = {'lock', 'queue', "waiters' heartbeats", 'ids of holds', 'fencing token'}
        return (refused({err = 'wrong kind of value'}, ': the ' .. names[i] .. ' is a ' .. kind)), i
      end
    end
  end
end

local function cut(s) -- a text with its length in front: the text and the rest
  local n, rest = string.match(s, '^(%d+):(.*)$')
  n = tonumber(n or 0)
  rest = rest or ''
  return string.sub(rest, 1, n), string.sub(rest, n + 1)
end

-- countable reports whether a token can be drawn. Lua counts up to 2^53.
local function countable()
  local token = redis.call('GET', KEYS[5])
  return not token or (string.match(token, '^%d+$') and #token <= 15)
end

-- draw returns the next token, as text, or '0' if none is wanted.
local function draw(fenced)
  return fenced == '1' and int(redis.call('INCR', KEYS[5])) or '0'
end

-- parse returns what a place says: QueueLease, whether it is fenced, session, owner, id.
local function parse(place)
  local fenced, lease, rest = string.match(place, '^(.)(%d+);(.*)$')
  local session, owner, id
  session, rest = cut(rest or '')
  owner, id = cut(rest)
  return tonumber(lease), fenced, session, owner, id
end

local function heard(place, deaf)
  redis.call('ZADD', KEYS[3], string.format('%.1f', now + ARGV[5] + (deaf == '1' and 0.5 or 0)), place)
end

local function enter(owner, id, lease)
  redis.call('DEL', KEYS[4]) -- ids of an earlier life
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
  redis.call('SADD', KEYS[4], id)
  redis.call('PEXPIRE', KEYS[4], lease)
end

local function forget(place)
  redis.call('ZREM', KEYS[2], place)
  redis.call('ZREM', KEYS[3], place)
end

-- grant gives the free lock to the first waiter that is alive, and tells it. One that has
-- died leaves the queue; one that is silent, or cannot be told, is passed over and keeps
-- its place until it counts as dead. `mine` are places that need not be told, since they
-- are asking just now. Returns the place, or false if there is none.
local function grant(mine)
  local passed = 0
  while true do
    local place = redis.call('ZRANGE', KEYS[2], passed, passed)[1]
    if not place then
      return false
    end
    local keeps = tonumber(redis.call('ZSCORE', KEYS[3], place) or 0) or 0
    local lease, fenced, session, owner, id = parse(place)
    if not lease or keeps < now + 1 then
      forget(place)
    elseif lease - (keeps - now) > lease * 11 / 24 then
      passed = passed + 1
    elseif fenced == '1' and not countable() then
      return false -- none can be let in; the waiters that ask are told why
    else
      local token = draw(fenced)
      local told = mine[place] and 1 or redis.call('PUBLISH', ARGV[3] .. session,
        'grant:' .. int(now) .. ':' .. token .. ':' .. id)
      if told == 0 and ARGV[4] == '1' and keeps % 1 == 0 then
        -- As silent as one that missed two heartbeats, until it is heard of again.
        redis.call('ZADD', KEYS[3], int(now + math.floor(lease * 13 / 24) - 1), place)
        passed = passed + 1
      else
        enter(owner, id, int(math.ceil(lease / 4)))
        forget(place)
        return place
      end
    end
  end
end

-- keep lets the queue live for as long as a waiter in it may.
local function keep()
  for i = 2, 3 do
    if redis.call('PTTL', KEYS[i]) < 2 * ARGV[5] then
      redis.call('PEXPIRE', KEYS[i], int(2 * ARGV[5]))
    end
  end
end

-- left is the lock's PTTL. Where time passes inside a script (miniredis) it may have ended
-- since it was looked at.
local function left()
  local ms = redis.call('PTTL', KEYS[1])
  return ms == -2 and 1 or ms
end
