-- How an exclusive lock lets in those who stand in its line: it is given to the first of them, or that is called.
-- The key of the lock exists exactly while an owner holds the lock.
--
-- Standing in the line. The script of a caller that waits, as acquire.lua of rlock:
--   1. If entries(0) has no other entry in front, and the lock is free, the caller takes the lock: step 4. Else it has its
--      entry enter. If the lock is held, that is all.
--   2. If the lock is free, and called_until is still to come, the lock is left to the entry that was called.
--   3. Else it runs pass_over for the first entry, and admit with its own entry as mine. If admit returns another
--      entry, that has the lock, or is called.
--   4. The caller writes its hold, and takes its entry, if it may stand there, off by take_off.
-- The script of an owner that leaves, as release.lua of rlock:
--   1. An entry that the owner may have in the line is taken out by leave.
--   2. The script ends the owner's holds, and runs admit, with the owner's field as leaving if that is there yet. If the owner
--      held nothing, it runs admit only where the key is gone, so that the line goes on.
--   3. An entry with which the session comes back into the line enters, behind the others.
--   4. Unless the lock was given, the script publishes that it is free.
-- give sets the owner's field to 1, and a TTL. Behind admit a script must not delete the key: it may be another owner's. No
-- code of the kind runs behind give, and leave gives the lock too. So a kind whose owners write more than that has its
-- entries called, and writes it when they ask: its Liner.Entry turns g and z into a, as acquire.go of internal/mutex does.
--
-- at, an argument of give, admit and leave, is a table:
--   channel: the lock's  publish: PUBLISH or SPUBLISH  counts: '1' if the reply of that counts all who hear it
--   prefix: what makes a session's channel of its id
--   token: the key of the fencing token; without it, entries that want tokens are called
--   of a release besides, owner: the one that leaves  listens: its session may listen to the lock's channel
-- include newest

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
    redis.call('ZREM', LINE, 'c')
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
  if type(redis.pcall('PEXPIRE', KEYS[1], number(entry, 5, 8))) == 'table' then
    redis.call('HDEL', KEYS[1], owner)
    return false
  end
  if is_fair(entry) then
    last, position = (scores[3] or NUMBER + 1) - NUMBER, tonumber(scores[2])
    if position >= PASSED then position = position - PASSED end
  end
  if not tell_given(at.prefix, entry, now, token, n, last, position) and string.sub(entry, 1, 1) ~= 'd' then
    redis.call('HDEL', KEYS[1], owner)
    return false
  end
  return true
end

-- leave_to deletes the field of an owner that leaves; the entry given, if there is one, has the lock already. If this user
-- may not run HDEL any more, the key is deleted, and made anew for that entry: else two owners would have the lock.
local function leave_to(given, leaving)
  if type(redis.pcall('HDEL', KEYS[1], leaving)) ~= 'table' then return end
  redis.call('DEL', KEYS[1])
  if not given then return end
  redis.call('HSET', KEYS[1], string.sub(given, 21), '1')
  redis.call('PEXPIRE', KEYS[1], number(given, 5, 8))
end

-- admit lets the first entry in when the lock comes free, or is free: it gives the lock to that entry, or calls it
-- and leaves the lock free.
--   heads: the first two members of the line
--   leaving: the field of the owner that leaves, or nil; it is deleted after the next owner is written, so that the
--     key of the lock never vanishes in between
--   mine: the entries of the session that runs this script, or nil; one of them is returned, and neither given nor called
--   stays: the line has another entry besides
--   booking: the booking of a session that polls, or nil
-- It returns the entry that may have the lock; whether the lock was given to it; and whether the script is to be sent
-- again, since there may be more entries than it has looked at.
local function admit(heads, at, us, now, leaving, mine, stays, booking)
  local entry, more, second, listeners, scores, slow = first_alive(heads, mine, at, now)
  local given = false
  if entry and mine and mine[entry] then return entry, false end
  if entry then
    local open = not is_fair(entry) and (booking and due(booking, now) or courtesy(listeners, entry, at, us, now) and 1)
    given = not open and give(entry, at, now, scores)
    -- At once: where this user may not do what follows, the script ends there, and two owners would have the lock.
    if leaving then leave_to(given and entry, leaving) end
    leaving = nil
    if given then
      take_off(entry, stays or more or booking)
    else
      call_in_turn(at.prefix, entry, second, now, open or 0, slow)
    end
  end
  if leaving then leave_to(nil, leaving) end
  return entry, given, not entry and more
end

-- tell_first tells an entry that it is the first now; if nobody hears that, the first one that is alive. Of more dead ones
-- than one script looks at, it has one behind them come when the lock ends.
local function tell_first(entry, at)
  if call(at.prefix, entry, 0) ~= 0 then return end
  local next, more, _, _, _, slow = first_alive(entries(0), nil, at, select(2, time()))
  if next and next ~= entry then call(at.prefix, next, 0) end
  if slow and slow ~= next then call(at.prefix, slow, 0) end
  if not next and more then call_when_it_ends(at.prefix) end
end

-- leave takes the entry of a caller that waits no more out of the line. If it was the first, the next one
-- has the lock if that is free, and else is told that it is the first.
local function leave(entry, at)
  local heads, booking = entries(0)
  if heads.err then return end
  if heads[1] ~= entry then
    redis.call('ZREM', LINE, entry, marks(entry)) -- another of the session may have come since
    return
  end
  take_off(entry, booking or is_entry(heads[2]))
  if not is_entry(heads[2]) then return end
  if redis.call('EXISTS', KEYS[1]) == 0 then
    local us, now = time()
    if not select(2, admit(entries(0), at, us, now)) then
      redis.call(at.publish, at.channel, '0')
    end
  else
    tell_first(heads[2], at)
  end
end
