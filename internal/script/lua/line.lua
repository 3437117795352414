-- The line of a lock: the sessions that wait for it, in the order of arrival. It needs `refused`.
-- KEYS[1] the lock; LINE, which the script has set, the line: sorted set. Its members, by score:
--   "b<session>" -> BOOKED and, in µs, from when the lock is left to that session, which polls, and for how
--     many ms as thousandths: it comes at the end of them; "b:<session>", to its readers when a writer leaves
--   an entry, see entry.lua -> its position, Redis's time in µs at its arrival; PASSED more: it was passed over
--   "s<session>" -> ALIVE less until when that is taken for alive, in ms
--   "l<session>" -> LISTENS less until when that surely listens to the lock's channel, in ms: for less
--     time than a channel stays subscribed that it has left, so that clients of others are counted rather too often
--   "w<session>", of a fair entry "w<entry>" -> WAITING and how many callers wait; without it one
--   "p<session>" -> PASSED_BY and since when it is, being a slow taker, in ms
--   "#<entry>" -> NUMBER and, of a fair entry, the number of its last caller; without it one
--   "k<entry>", of permits, see serve.lua of semaphore; "m", of writers, see mark.lua of rwlock; "t" and, from READ on,
--     readers, see gate.lua
--   "c" -> CALLED and until when the lock is left to the entry that was called, in ms
-- The messages, on the channel of a session: 'granted:<now>:<token>:<tokens>:<last>:<position>:<length of
--   entry>:<entry><key>', it has the lock, of a fair entry the callers up to the last one;
--   'called:<ms>:<length of entry>:<entry><key>', it may ask then
-- include book, entry
-- Scores that come again only fall (ZADD LT): so an entry keeps its position, and times only grow.
local PASSED, NUMBER, ALIVE, LISTENS, PASSED_BY, CALLED, WAITING, READ =
  2.4e15, 4.85e15, 5e15, 6e15, 7e15, 8e15, 8.6e15, '8.7e15'
-- A process that was heard of AWAKE_MS ago runs; a slow taker is passed by for SLOW_MS at most. Where MOST_DOZING in a row
-- doze it is not one that is slow, and to look at more would cost each release dearly.
local AWAKE_MS, SLOW_MS, MOST_DOZING = 1, 100, 4
-- For how long the lock is left to an entry that was called, see patience.
local PATIENCE_MS, FAIR_PATIENCE_MS, MOST_PATIENCE_MS = 5, 250, 999

-- time returns Redis's in µs and in ms.
local function time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2], t[1] * 1000 + math.floor(t[2] / 1000)
end

-- entries returns two entries of the line, from the n-th on, and what follows where there are no more. If n is 0 it
-- also returns a booking, if there is one; and whether a newcomer comes behind the first of them. It does not if
-- that was passed over, as then all were.
local function entries(n)
  local heads = n == 0 and redis.pcall('ZRANGE', LINE, 0, 1, 'WITHSCORES')
  if heads and heads.err then return heads end
  local booking = heads and string.sub(heads[1] or '', 1, 1) == 'b' and heads[1]
  if booking or not heads then heads = redis.call('ZRANGEBYSCORE', LINE, '0', '+inf', 'WITHSCORES', 'LIMIT', n, 2) end
  return {heads[1], heads[3]}, booking, heads[1] and tonumber(heads[2]) < PASSED
end

-- due takes a booking off the line whose time has come, and returns for how many ms the lock is left to its session then;
-- nil if it is not.
local function due(booking, now)
  local v = tonumber(redis.call('ZSCORE', LINE, booking)) - BOOKED
  local from, window = math.floor(v / 1000), v % 1000
  if now < from then return nil end
  redis.call('ZREM', LINE, booking)
  return now <= from + window and from + window - now + 3 or nil
end

-- sweep deletes a line in which no entry stands any more: what is left speaks of the dead, unless it is a booking; or
-- readers stand there, see gate.lua. While the slot moves Redis does not speak of a line that is gone.
local function sweep()
  local rest = redis.pcall('ZRANGE', LINE, 0, 0)
  if rest[1] and not is_entry(rest[1]) and string.sub(rest[1], 1, 1) ~= 'b' and redis.call('ZCOUNT', LINE, READ, '+inf') == 0 then
    redis.call('DEL', LINE)
  end
end

-- keep_line lets it live for longer than an entry may be silent.
local function keep_line(life)
  if redis.call('PTTL', LINE) < 2 * life then redis.call('PEXPIRE', LINE, 3 * life) end
end

-- forget takes members out whose scores are from low to high, 64 at most: however many there are, they make no script
-- slow, and the next ones take out the rest.
local function forget(low, high)
  local old = redis.call('ZRANGEBYSCORE', LINE, int(low), int(high), 'LIMIT', 0, 64)
  if old[1] then redis.call('ZREM', LINE, unpack(old)) end
end

-- enter puts an entry in the line, or keeps it there, and notes that its session is alive, whether that
-- listens to the lock's channel, and how many of its callers wait, unless that is nil or '0'; of a fair entry
-- also the number of the last of them. It returns why Redis does not take it, or nil.
local function enter(entry, position, us, now, listens, waiting, look, last)
  local session, life = session_of(entry), number(entry, 9, 15)
  local alive = int(ALIVE - now - life)
  local done
  if listens then
    done = redis.pcall('ZADD', LINE, 'LT', int(position), entry, alive, 's' .. session, int(LISTENS - now - 450), 'l' .. session)
  else
    done = redis.pcall('ZADD', LINE, 'LT', int(position), entry, alive, 's' .. session)
  end
  if type(done) == 'table' then return done end
  if waiting and waiting ~= '0' then
    redis.call('ZADD', LINE, int(WAITING + waiting), 'w' .. (last and entry or session))
  end
  if last and (look or last ~= '1') then redis.call('ZADD', LINE, int(NUMBER + last), '#' .. entry) end
  keep_line(life)
  if look or us % 1024 == 0 then -- now and then; what was said of sessions that are not heard of any more goes too
    forget(ALIVE - now + math.max(10000, life), ALIVE)
    forget(LISTENS - now + math.max(10000, life), LISTENS)
    forget(PASSED_BY, PASSED_BY + now - 10000)
  end
end

-- leave_to_others enters a newcomer where the lock is free and no entry stands in the line, but the lock is left to a
-- booking, or to readers that were called, for ms; c says so. It does nothing if ms is nil. It returns what to answer, or nil.
local function leave_to_others(ms, entry, us, now, listens, waiting)
  if not ms then return nil end
  local bad = enter(entry, us, us, now, listens, waiting)
  if bad then return (refused(bad, ': the line')) end
  redis.call('ZADD', LINE, int(CALLED + now + ms), 'c')
  return {0, ms, now, us}
end

-- take_off takes an entry out of the line, which goes with the last one; more says that there are others.
local function take_off(entry, more)
  if more then
    redis.call('ZREM', LINE, entry, 'c', marks(entry))
  else
    redis.call('DEL', LINE)
  end
end

-- called_until returns until when the lock is left to the entry that was called, in ms; 0: to none, or Redis's
-- clock has leapt back since.
local function called_until(now, score)
  local called = (tonumber(score or redis.call('ZSCORE', LINE, 'c') or 0)) - CALLED
  return called < now + 2 * MOST_PATIENCE_MS + 200 and called or 0 -- behind a booking, and readers that come before
end

-- patience returns for how many ms the lock is left to an entry that was called: longer for one that is far away, or comes
-- with its next sign of life. A fair line keeps its order for a process that is slow, and one that has stopped costs a fifth
-- of what one costs that was given the lock.
local function patience(entry)
  if is_deaf(entry) then return math.min(math.max(FAIR_PATIENCE_MS, number(entry, 5, 8)), 2 * MOST_PATIENCE_MS) end
  if is_fair(entry) then return FAIR_PATIENCE_MS end
  if string.sub(entry, 1, 1) == 'C' then return math.max(PATIENCE_MS, tonumber(string.sub(entry, 7, 8), 36)) end
  return string.find(entry, '^[anWNVURS]') and math.max(PATIENCE_MS, number(entry, 2, 4)) or PATIENCE_MS
end

-- call tells the session of an entry that it may ask, so many ms later, and returns how many heard that; false if
-- this user may not.
local function call(prefix, entry, ms)
  local told = redis.pcall('PUBLISH', prefix .. session_of(entry), 'called:' .. ms .. ':' .. #entry .. ':' .. entry .. KEYS[1])
  return type(told) ~= 'table' and told
end

-- tell_given tells the session of an entry that it has what it waits for, and returns false if this user may not.
local function tell_given(prefix, entry, now, token, tokens, last, position)
  local told = redis.pcall('PUBLISH', prefix .. session_of(entry), 'granted:' .. int(now) .. ':' .. int(token) .. ':'
    .. int(tokens) .. ':' .. int(last) .. ':' .. int(position) .. ':' .. #entry .. ':' .. entry .. KEYS[1])
  return type(told) ~= 'table'
end

-- pass_over moves the first entry behind the others if the time that it had to come ended at called, less than a second
-- ago. It is called again, and has its old position back when it asks.
local function pass_over(first, prefix, called, now)
  if now - called >= 1000 then return end
  local score = tonumber(redis.call('ZSCORE', LINE, first))
  if score < PASSED then
    redis.call('ZADD', LINE, int(score + PASSED), first)
    call(prefix, first, 0)
  end
  redis.call('ZREM', LINE, 'c')
end

-- call_in_turn calls an entry that is not given the lock, and leaves that to it for a while; and those behind
-- it, each when the one in front of it has had its time, up to one that would be given the lock: else nobody
-- would come if several sessions in a row have stopped. It also calls the slow taker that stands first and was
-- passed by, if there is one: only the first of the line listens for those who come in from outside of it.
local function call_in_turn(prefix, entry, second, now, ms, slow)
  if slow then call(prefix, slow, ms) end
  local patient = slow and PATIENCE_MS or patience(entry) -- until c ends nobody else is let in, the slow taker included
  if call(prefix, entry, ms) then redis.pcall('ZADD', LINE, int(CALLED + now + ms + patient), 'c') end
  local behind = {second}
  for i = 1, 16 do
    local next = behind[i]
    if not is_entry(next) then return end
    ms, patient = ms + patient, patience(next)
    call(prefix, next, ms)
    if string.find(next, '^[gzfhdPQVU]') then return end
    if i == 1 then behind = redis.call('ZRANGEBYSCORE', LINE, redis.call('ZSCORE', LINE, next), '+inf', 'LIMIT', 0, 16) end
  end
end

-- others_listen returns how many of the listeners of the lock's channel are others than the line's sessions: those say
-- in the line that they listen.
local function others_listen(listeners, entry, at, now)
  if listeners <= 0 then return 0 end
  local ours = redis.call('ZCOUNT', LINE, '(' .. int(ALIVE), '(' .. int(LISTENS - now))
  local function until_when(session) return LISTENS - (redis.call('ZSCORE', LINE, 'l' .. session) or LISTENS) end
  local session = session_of(entry)
  local first = until_when(session)
  if first <= now and first > now - number(entry, 9, 15)
      and (first - 450) * 1000 > tonumber(redis.call('ZSCORE', LINE, entry)) % PASSED then
    -- It has said so since it came, and goes on as the first; if it is let in now, for longer than its mark lasts.
    ours = ours + 1
    redis.pcall('ZADD', LINE, 'LT', int(LISTENS - now - 450), 'l' .. session)
  end
  local leaving = at.listens and string.match(at.owner, '^(.+):%d+$')
  if leaving and until_when(leaving) <= now then ours = ours + 1 end
  return math.max(0, listeners - ours)
end

-- courtesy decides by chance, from the µs, whether the lock is left to those others this time: as often as their share of
-- all who wait.
local function courtesy(listeners, entry, at, us, now)
  local others = others_listen(listeners, entry, at, now)
  return others > 0 and us % (others + redis.call('ZCOUNT', LINE, '0', '(' .. int(PASSED))) < others
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

-- dozes says whether an entry is passed by this time: it is of a slow taker that was not heard of within AWAKE_MS, and has
-- been passed by for less than SLOW_MS. When that begins it is called, and then asks again and again as long as its
-- process runs.
local function dozes(entry, session, heard, at, now)
  if not string.find(entry, '^[zQU]') or now - heard <= AWAKE_MS then return false end
  local since = redis.call('ZSCORE', LINE, 'p' .. session)
  if not since then
    redis.pcall('ZADD', LINE, int(PASSED_BY + now), 'p' .. session)
    call(at.prefix, entry, 0)
  end
  return now - (tonumber(since or PASSED_BY + now) - PASSED_BY) < SLOW_MS
end

-- first_alive returns the first entry whose session is there, whether the line has others, the member
-- behind it, how many connections listen to the lock's channel, and of a fair entry its position, the number
-- of its last caller and how many wait, as scores; of one for permits the score of c; and last, if slow takers were
-- passed by, the first of them. Entries of sessions that are silent, or that nobody listens for, are moved behind the
-- others, once; those of dead ones go. A slow taker that dozes is passed by, unless there is no other.
local function first_alive(heads, mine, at, now, from)
  from = from or 0
  local passed, dozing, listeners_then = 0, nil, 0
  for i = 1, 17 do
    if i == 17 then return nil, true end
    local entry, second = heads[1], heads[2]
    if not is_entry(entry) then
      if passed + from == 0 then sweep() end
      break
    end
    if mine and mine[entry] then return entry, passed > 0 or is_entry(second), second, 0, nil, dozing end
    local session, life = session_of(entry), number(entry, 9, 15)
    local scores
    if is_fair(entry) then
      scores = redis.call('ZMSCORE', LINE, 's' .. session, entry, '#' .. entry, 'w' .. entry)
    elseif string.find(entry, '^[PQC]') then
      scores = redis.call('ZMSCORE', LINE, 's' .. session, 'c')
    else
      scores = {redis.call('ZSCORE', LINE, 's' .. session)}
    end
    local alive = ALIVE - tonumber(scores[1] or ALIVE)
    local hear, listeners = listeners_of(session, at)
    if alive >= now and (hear > 0 or is_deaf(entry)) then
      if not dozes(entry, session, alive - life, at, now) then
        return entry, passed > 0 or is_entry(second), second, listeners, scores, dozing
      end
      passed, dozing, listeners_then = passed + 1, dozing or entry, listeners
      if passed >= MOST_DOZING then break end
    elseif alive + life < now then
      redis.call('ZREM', LINE, entry, 's' .. session, 'l' .. session, marks(entry, session))
    else
      local position = tonumber(redis.call('ZSCORE', LINE, entry))
      local moved = position < PASSED and redis.pcall('ZADD', LINE, int(position + PASSED), entry)
      if type(moved) ~= 'number' then break end -- once; or Redis has no memory
    end
    heads = entries(from + passed)
  end
  return dozing, dozing and is_entry(entries(0)[2]), nil, listeners_then
end
