-- The readers of a read-write lock that wait stand behind its writers in the line, with one entry for each session. A
-- writer that leaves opens the gate: who stands there by then is called, and may come in although writers wait. Who comes
-- later waits for the next writer to leave. LINE, which the script has set, is the line, see line.lua; it has besides
--   an entry of readers -> READERS and since when it stands there, in ms; less LATE_BY: it was called, and did not come
--     before the next writer. Its letter is R; S, the owner is named
--   "t" -> OPENED and when the gate was opened last, in ms
-- include newest
local READERS, LATE_BY, OPENED = 8.8e15, 1e14, 8.5e15
-- So many are called at once; and so many times, where none of them is to come.
local MOST_CALLED, MOST_PAGES = 256, 4

-- opened_at returns when the gate was opened last, by the score of t; 0: never, or Redis's clock has leapt back since.
local function opened_at(now, score)
  local at = (tonumber(score or nil) or OPENED) - OPENED
  return at <= now and at or 0
end

-- expects returns for how many ms more the lock is left to readers that were called; nil if all have come. Of many it
-- looks at a few: when these have come, at the next.
local function expects(now)
  local opened, ms = opened_at(now, redis.call('ZSCORE', LINE, 't')), 0
  if now - opened >= MOST_PATIENCE_MS then return nil end
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', LINE, int(READERS), int(READERS + opened), 'LIMIT', 0, 16)) do
    ms = math.max(ms, opened + patience(entry) - now)
  end
  return ms > 0 and ms or nil
end

-- short_mark_end returns when a mark ends that is cut short: a second after the time is over that the readers have who were
-- called, or the writer.
local function short_mark_end(now) return math.max(now + (expects(now) or 0), called_until(now)) + 1000 end

-- call_readers calls some readers; there are their entries and scores. It returns how many are to come, how many ms the one
-- that is furthest away has, and how many stay in the line.
local function call_readers(there, before, prefix, counts, now)
  local n, ms, stay = 0, 0, #there / 2
  for i = 1, #there, 2 do
    local entry, since = there[i], there[i + 1] - READERS
    if call(prefix, entry, 0) == 0 and counts == '1' or since < now - 10000 - LATE_BY then
      redis.call('ZREM', LINE, entry, 'w' .. session_of(entry))
      stay = stay - 1
    elseif since > before then
      n, ms = n + 1, math.max(ms, patience(entry))
    elseif since > 0 then -- it was called, and did not come: writers wait for it no more
      redis.pcall('ZADD', LINE, int(READERS + since - LATE_BY), entry)
    end
  end
  return n, ms, stay
end

-- open_gate opens it to those whose scores are from low on. It returns how many are to come, and how many ms the one that
-- is furthest away has. Of too many it calls some; the gate is open to these, and the first of them that comes in calls
-- the next. Where some are all dead, or late already, it calls the next; and if that does not end, the newest.
local function open_gate(low, prefix, counts, now)
  local before, seen = nil, 0
  for _ = 1, MOST_PAGES do
    local there = redis.call('ZRANGEBYSCORE', LINE, low, '+inf', 'WITHSCORES', 'LIMIT', int(seen), MOST_CALLED)
    if not there[1] then return 0, 0 end
    before = before or opened_at(now, redis.call('ZSCORE', LINE, 't'))
    local n, ms, stay = call_readers(there, before, prefix, counts, now)
    local full = #there == 2 * MOST_CALLED
    if n > 0 then
      redis.pcall('ZADD', LINE, int(OPENED + (full and math.min(now, there[#there] - READERS) or now)), 't')
    end
    if n > 0 or not full then return n, ms end
    seen = seen + stay -- those that have become late stand in front of all that were not looked at
  end
  call_newest(prefix, 0, low, '+inf')
  return 0, 0
end

-- was_called says whether the gate was opened since readers stand in the line, by the score of their entry.
local function was_called(score, opened) return score and tonumber(score) <= READERS + opened end

-- may_come says whether the gate was opened since readers began to wait: by the score of their entry; or, where their
-- session had another entry then and score is nil, by the ms for which they have waited.
local function may_come(score, now, opened, waited)
  opened = opened_at(now, opened)
  return was_called(score, opened) or not score and now - waited < opened
end

-- wait_for_writers has readers stand in the line. It returns why they cannot; or false, a position, and whether they are
-- the first of those who wait for the same writer, or the second: should a process die, another one knows when the lock
-- is free.
local function wait_for_writers(entry, now, us, listens, waiting, score, opened)
  opened = opened_at(now, opened)
  local called = was_called(score, opened)
  local since = math.max(now, opened + 1)
  local bad = enter(entry, READERS + since, us, now, listens, waiting)
  if bad then return bad end
  if called then -- it lives, and waits for the writer that is inside
    redis.pcall('ZADD', LINE, int(READERS + since), entry)
    return false, since, true
  end
  if score then since = score - READERS end
  local first = redis.call('ZRANGEBYSCORE', LINE, '(' .. int(READERS + opened), '+inf', 'LIMIT', 0, 2)
  return false, since, first[1] == entry or first[2] == entry
end

-- come_in takes readers off the line who have come in; and calls those who came later, unless a writer waits.
local function come_in(entry, prefix, counts, now, writer_waits, opened)
  redis.call('ZREM', LINE, entry, 'w' .. session_of(entry))
  if writer_waits then return end
  open_gate('(' .. int(READERS + opened_at(now, opened)), prefix, counts, now)
  sweep()
end

-- leave_gate takes readers off the line who wait no more; those that come to be the second are told.
local function leave_gate(entry, prefix, now)
  if redis.call('ZREM', LINE, entry) == 0 then return end
  redis.call('ZREM', LINE, 'w' .. session_of(entry))
  local opened = opened_at(now, redis.call('ZSCORE', LINE, 't'))
  local next = redis.call('ZRANGEBYSCORE', LINE, '(' .. int(READERS + opened), '+inf', 'LIMIT', 1, 1)
  if next[1] then
    call(prefix, next[1], 0)
  elseif not redis.call('ZSCORE', LINE, 'm') then
    sweep()
  end
end
