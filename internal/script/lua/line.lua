-- The line of a lock: the sessions that wait for it, in the order of arrival. It needs `refused`.
-- KEYS[1] the lock; KEYS[2] the line: sorted set. Its members, by score:
--   "b<session>" -> BOOKED and, in µs, from when the lock is left to that session, which polls, and for how
--     many ms as thousandths: it comes at the end of them
--   an entry -> its position, Redis's time in µs at its arrival; PASSED more: it was passed over
--   "s<session>" -> ALIVE less until when that is taken for alive, in ms
--   "l<session>" -> LISTENS less until when that surely listens to the lock's channel, in ms: shorter than
--     a channel lingers that is not listened to any more, since who listens beside them must not starve
--   "w<session>", of a fair entry "w<entry>" -> WAITING and how many callers wait; without it one
--   "p<session>" -> PASSED_BY and since when it is, being a slow taker, in ms
--   "#<entry>" -> NUMBER and, of a fair entry, the number of its last caller; without it one
--   "c" -> CALLED and until when the lock is left to the entry that was called, in ms
-- An entry is 20 letters, and the owner:
--   1: g, the lock may be given to it; z, too, but its session is a slow taker, see dozes; a, its session is
--     called, and asks; n, so too, and the owner is named. Of a fair lock, which leaves no round to others
--     and passes no slow taker by: f, given, and other callers may join it; h, given; d, given although its
--     session hears nothing; e, called; i, so too, and named
--   2-4: fencing tokens that it wants; of a fair entry 999: as many as callers wait  5-8: for how many ms the lock is given  9-15: for how many ms its
--     session is taken for alive after each sign of life  16-20: length of the session, which comes next: as
--     the beginning of a private owner; or in front of a named one, for i with the id of the hold, 32 letters
-- The messages, on the channel of a session: 'granted:<now>:<token>:<tokens>:<last>:<position>:<length of
--   entry>:<entry><key>', it has the lock, of a fair entry the callers up to the last one;
--   'called:<ms>:<length of entry>:<entry><key>', it may ask then
-- include int
-- Scores that come again only fall (ZADD LT): so an entry keeps its position, and times only grow.
local BOOKED, PASSED, NUMBER, ALIVE, LISTENS, PASSED_BY, CALLED, WAITING =
  -9e15, 2.4e15, 4.85e15, 5e15, 6e15, 7e15, 8e15, 8.6e15
-- A process that was heard of so short a time ago runs; a slow taker waits no longer than that as the first.
local AWAKE_MS, SLOW_MS = 1, 100
-- For how long the lock is left to an entry that was called. A fair line keeps its order for a process that is
-- slow, and one that has stopped costs a fifth of what one costs that was given the lock.
local PATIENCE_MS, FAIR_PATIENCE_MS = 5, 250

-- clock returns Redis's time in µs and in ms.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2], t[1] * 1000 + math.floor(t[2] / 1000)
end

local function is_fair(entry) return string.find(entry, '^[defhi]') ~= nil end

local function is_entry(member) return member and string.find(member, '^[gzandefhi]') ~= nil end

-- entries returns two entries of the line, from the n-th on, and what follows where there are no more; the
-- second result is a booking, if there is one and n is 0.
local function entries(n)
  local heads = redis.pcall('ZRANGE', KEYS[2], n, n + 1)
  if heads.err or not heads[1] or n == 0 and string.sub(heads[1], 1, 1) ~= 'b' then return heads, nil end
  return redis.call('ZRANGEBYSCORE', KEYS[2], '0', '+inf', 'LIMIT', n, 2), n == 0 and heads[1]
end

-- book leaves a round to a session that polls: it comes again so many ms later, and what comes free in so
-- many ms before is left to it.
local function book(session, ms, window, now)
  local from = now + ms - window
  redis.call('ZADD', KEYS[2], int(BOOKED + from * 1000 + window), 'b' .. session)
  if redis.call('PTTL', KEYS[2]) < ms + 5000 then redis.call('PEXPIRE', KEYS[2], ms + 5000) end
end

-- due returns for how many ms the lock is left to a session that has booked; nil if it is not.
local function due(booking, now)
  local v = tonumber(redis.call('ZSCORE', KEYS[2], booking)) - BOOKED
  local from, window = math.floor(v / 1000), v % 1000
  if now < from then return nil end
  redis.call('ZREM', KEYS[2], booking)
  return now <= from + window and from + window - now + 3 or nil
end

-- number reads some digits; not every Lua takes leading zeros for nothing by itself.
local function number(entry, from, to) return tonumber(string.sub(entry, from, to), 10) end

local function session_of(entry) return string.sub(entry, 21, 20 + number(entry, 16, 20)) end

-- marks returns the members of the line that speak of an entry besides; c may speak of any.
local function marks(entry, session)
  if is_fair(entry) then return '#' .. entry, 'w' .. entry end
  return 'w' .. session, 'p' .. session
end

-- keep lets the line live for longer than an entry may be silent.
local function keep(life)
  if redis.call('PTTL', KEYS[2]) < 2 * life then redis.call('PEXPIRE', KEYS[2], 3 * life) end
end

-- enter puts an entry in the line, or keeps it there, and notes that its session is alive, whether that
-- listens to the lock's channel, and how many of its callers wait, unless that is nil or '0'; of a fair entry
-- also the number of the last of them. It returns why Redis does not take it, or nil.
local function enter(entry, position, us, now, listens, waiting, look, last)
  local session, life = session_of(entry), number(entry, 9, 15)
  local alive = int(ALIVE - now - life)
  local done
  if listens then
    done = redis.pcall('ZADD', KEYS[2], 'LT', int(position), entry, alive, 's' .. session, int(LISTENS - now - 450), 'l' .. session)
  else
    done = redis.pcall('ZADD', KEYS[2], 'LT', int(position), entry, alive, 's' .. session)
  end
  if type(done) == 'table' then return done end
  if waiting and waiting ~= '0' then
    redis.call('ZADD', KEYS[2], int(WAITING + waiting), 'w' .. (last and entry or session))
  end
  if last and (look or last ~= '1') then redis.call('ZADD', KEYS[2], int(NUMBER + last), '#' .. entry) end
  keep(life)
  if look or us % 1024 == 0 then -- now and then; what was said of sessions that are not heard of any more goes too
    redis.call('ZREMRANGEBYSCORE', KEYS[2], int(ALIVE - now + math.max(10000, life)), int(ALIVE))
    redis.call('ZREMRANGEBYSCORE', KEYS[2], int(LISTENS - now + 10000), int(LISTENS))
    redis.call('ZREMRANGEBYSCORE', KEYS[2], int(PASSED_BY), int(PASSED_BY + now - 10000))
  end
end

-- take_off takes an entry out of the line, which goes with the last one; more says that there are others.
local function take_off(entry, more)
  if more then
    redis.call('ZREM', KEYS[2], entry, 'c', marks(entry, session_of(entry)))
  else
    redis.call('DEL', KEYS[2])
  end
end

-- called_until returns until when the lock is left to the entry that was called, in ms; 0: to none, or Redis's
-- clock has leapt back since.
local function called_until(now)
  local called = (tonumber(redis.call('ZSCORE', KEYS[2], 'c') or 0)) - CALLED
  return called < now + 1000 and called or 0
end

-- call tells the session of an entry that it may ask, so many ms later, if this user may.
local function call(prefix, entry, ms)
  local told = redis.pcall('PUBLISH', prefix .. session_of(entry), 'called:' .. ms .. ':' .. #entry .. ':' .. entry .. KEYS[1])
  return type(told) ~= 'table'
end

-- call_in_turn calls an entry that is not given the lock, and leaves that to it for a while; and those behind
-- it, each when the one in front of it has had its time, up to one that would be given the lock: else nobody
-- would come if several sessions in a row have stopped.
local function call_in_turn(prefix, entry, second, now, ms)
  local patience = is_fair(entry) and FAIR_PATIENCE_MS or PATIENCE_MS
  if call(prefix, entry, ms) then redis.pcall('ZADD', KEYS[2], int(CALLED + now + ms + patience), 'c') end
  local behind = {second}
  for i = 1, 16 do
    local next = behind[i]
    if not is_entry(next) then return end
    ms = ms + patience
    call(prefix, next, ms)
    if string.find(next, '^[gzfhd]') then return end
    if i == 1 then behind = redis.call('ZRANGEBYSCORE', KEYS[2], redis.call('ZSCORE', KEYS[2], next), '+inf', 'LIMIT', 0, 16) end
  end
end

-- courtesy says whether the lock is left to others than the line's sessions this time: as often as they
-- are due. Of the listeners of the lock's channel those are no others that say so in the line.
local function courtesy(listeners, entry, at, us, now)
  if listeners <= 0 then return false end
  local ours = redis.call('ZCOUNT', KEYS[2], '(' .. int(ALIVE), '(' .. int(LISTENS - now))
  local function until_when(session) return LISTENS - (redis.call('ZSCORE', KEYS[2], 'l' .. session) or LISTENS) end
  local first = until_when(session_of(entry))
  if first <= now and first > now - 2500 then ours = ours + 1 end -- it goes on
  local leaving = at.listens and string.match(at.owner, '^(.+):%d+$')
  if leaving and until_when(leaving) <= now then ours = ours + 1 end
  local others = listeners - ours
  return others > 0 and us % (others + redis.call('ZCOUNT', KEYS[2], '0', '(' .. int(PASSED))) < others
end

-- listeners_of returns how many connections listen to the channel of a session, 1 if that is not known,
-- and how many to the lock's channel, 0 if that is not known. In a Cluster NUMSUB tells of one node only.
local function listeners_of(session, at)
  local sharded, n = at.publish == 'SPUBLISH', nil
  if sharded then
    n = redis.pcall('PUBSUB', 'SHARDNUMSUB', at.channel)
  elseif at.counts == '1' then
    n = redis.pcall('PUBSUB', 'NUMSUB', at.prefix .. session, at.channel)
  end
  if not n or n.err then return 1, 0 end
  return sharded and 1 or tonumber(n[2]), tonumber(n[#n])
end

-- dozes says whether the lock is not given to the entry of a slow taker yet: its session was not heard of
-- just now, and it has not been passed by for SLOW_MS. When that begins it is called, and then asks again
-- and again as long as it runs.
local function dozes(entry, session, heard, at, now)
  if string.sub(entry, 1, 1) ~= 'z' or now - heard <= AWAKE_MS then return false end
  local since = redis.call('ZSCORE', KEYS[2], 'p' .. session)
  if not since then
    redis.pcall('ZADD', KEYS[2], int(PASSED_BY + now), 'p' .. session)
    call(at.prefix, entry, 0)
  end
  return now - (tonumber(since or PASSED_BY + now) - PASSED_BY) < SLOW_MS
end

-- first_alive returns the first entry whose session is there, whether the line has others, the member
-- behind it, how many connections listen to the lock's channel, and of a fair entry its position, the number
-- of its last caller and how many wait, as scores. Entries of sessions that are silent, or that nobody listens
-- for, are moved behind the others, once; those of dead ones go. A slow taker that dozes is passed by, unless
-- there is no other.
local function first_alive(heads, mine, at, now)
  local passed, dozing, listeners_then = 0, nil, 0
  for i = 1, 17 do
    if i == 17 then return nil, true end
    local entry, second = heads[1], heads[2]
    if not is_entry(entry) then
      -- With its last entry a line goes; what is left speaks of the dead, unless it is a booking. While the slot
      -- moves Redis does not speak of a line that is gone.
      local rest = passed == 0 and redis.pcall('ZRANGE', KEYS[2], 0, 0)
      if rest and rest[1] and string.sub(rest[1], 1, 1) ~= 'b' then redis.call('DEL', KEYS[2]) end
      break
    end
    if mine and mine[entry] then return entry, passed > 0 or is_entry(second), second, 0 end
    local session, life = session_of(entry), number(entry, 9, 15)
    local scores
    if is_fair(entry) then
      scores = redis.call('ZMSCORE', KEYS[2], 's' .. session, entry, '#' .. entry, 'w' .. entry)
    else
      scores = {redis.call('ZSCORE', KEYS[2], 's' .. session)}
    end
    local alive = ALIVE - tonumber(scores[1] or ALIVE)
    local hear, listeners = listeners_of(session, at)
    if alive >= now and (hear > 0 or string.sub(entry, 1, 1) == 'd') then
      if not dozes(entry, session, alive - life, at, now) then
        return entry, passed > 0 or is_entry(second), second, listeners, scores
      end
      passed, dozing, listeners_then = passed + 1, dozing or entry, listeners
    elseif alive + life < now then
      redis.call('ZREM', KEYS[2], entry, 's' .. session, 'l' .. session, marks(entry, session))
    else
      local position = tonumber(redis.call('ZSCORE', KEYS[2], entry))
      local moved = position < PASSED and redis.pcall('ZADD', KEYS[2], int(position + PASSED), entry)
      if type(moved) ~= 'number' then break end -- once; or Redis has no memory
    end
    heads = entries(passed)
  end
  return dozing, dozing and is_entry(entries(0)[2]), nil, listeners_then
end

-- give makes the owner of an entry the owner of the lock, and tells its session. It returns false, and has
-- changed nothing, if the entry cannot be given the lock here, or its session cannot be told.
local function give(entry, at, now, scores)
  local n, token, last, position = number(entry, 2, 4), 0, 0, 0
  if not string.find(entry, '^[gzfhd]') or n > 0 and not at.token then return false end
  if n == 999 then n = math.max(1, (scores[4] or WAITING) - WAITING) end
  local owner = string.sub(entry, 21)
  local written = redis.pcall('HSET', KEYS[1], owner, '1')
  if type(written) == 'table' then
    -- A server without memory lets a script write that has written what needs none.
    redis.call('ZREM', KEYS[2], 'c')
    written = redis.pcall('HSET', KEYS[1], owner, '1')
  end
  if type(written) == 'table' then return false end
  if n > 0 then
    token = redis.pcall('INCRBY', at.token, n)
    if type(token) == 'table' then
      redis.call('HDEL', KEYS[1], owner)
      return false
    end
  end
  redis.call('PEXPIRE', KEYS[1], number(entry, 5, 8))
  if is_fair(entry) then
    last, position = (scores[3] or NUMBER + 1) - NUMBER, tonumber(scores[2])
    if position >= PASSED then position = position - PASSED end
  end
  local told = redis.pcall('PUBLISH', at.prefix .. session_of(entry), 'granted:' .. int(now) .. ':' .. int(token)
    .. ':' .. int(n) .. ':' .. int(last) .. ':' .. int(position) .. ':' .. #entry .. ':' .. entry .. KEYS[1])
  if type(told) == 'table' and string.sub(entry, 1, 1) ~= 'd' then
    redis.call('HDEL', KEYS[1], owner)
    return false
  end
  return true
end

-- admit lets the first entry in when the lock comes free, or is: it gives the lock to it, or calls it and
-- leaves the lock free. heads are the first two members of the line; leaving, if not nil, is the field of
-- the owner that leaves, which goes when the next one stands there; mine are the entries of a session that
-- asks, which is not told, or nil. stays says that the line has another entry besides; booking is of a session that
-- polls, if there is one. It returns the entry that may have the lock, whether that was given to it, and
-- whether there may be more that were not looked at: then it is to be sent again.
local function admit(heads, at, us, now, leaving, mine, stays, booking)
  local entry, more, second, listeners, scores = first_alive(heads, mine, at, now)
  local given = false
  if entry and mine and mine[entry] then return entry, false end
  if entry then
    local open = not is_fair(entry) and (booking and due(booking, now) or courtesy(listeners, entry, at, us, now) and 1)
    given = not open and give(entry, at, now, scores)
    if given then
      take_off(entry, stays or more or booking)
    else
      call_in_turn(at.prefix, entry, second, now, open or 0)
    end
  end
  if leaving then redis.call('HDEL', KEYS[1], leaving) end
  return entry, given, not entry and more
end

-- leave takes the entry of a caller that waits no more out of the line. If it was the first, the next one
-- has the lock if that is free, and else is told that it is the first.
local function leave(entry, at)
  local heads, booking = entries(0)
  if heads.err then return end
  if heads[1] ~= entry then
    redis.call('ZREM', KEYS[2], entry, marks(entry, session_of(entry))) -- another of the session may have come since
    return
  end
  take_off(entry, booking or is_entry(heads[2]))
  if not is_entry(heads[2]) then return end
  if redis.call('EXISTS', KEYS[1]) == 0 then
    local us, now = clock()
    if not select(2, admit(entries(0), at, us, now)) then
      redis.call(at.publish, at.channel, '0')
    end
  else
    call(at.prefix, heads[2], 0)
  end
end
