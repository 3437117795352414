-- writers.lua: the writers that wait stand in the line, one entry for each session, and are given the lock one after the
-- other, or called. A writer that leaves opens the gate for the readers that wait, see gate.lua; the last of them lets
-- the next writer in.
-- LINE, which the script has set, is the line; at is what line.lua asks for.
-- include mark, gate

-- keep_out leaves the mark for so many ms, or longer if it lives for longer.
local function keep_out(ms, now)
  local until_when = math.max(now + ms, marked_until(redis.call('ZSCORE', LINE, 'm')) or 0)
  if type(redis.pcall('ZADD', LINE, int(MARKED + until_when), 'm')) == 'table' then return end -- Redis has no memory
  if redis.call('PTTL', LINE) < until_when - now then redis.call('PEXPIRE', LINE, int(until_when - now)) end
end

-- fade has the mark end at short_mark_end, if that is sooner: the writers that wait have that long to come, if they live.
local function fade(score, now)
  local until_when = marked_until(score)
  if not until_when or until_when <= now + 1000 then return end -- which is the least that short_mark_end leaves
  redis.pcall('ZADD', LINE, int(MARKED + math.min(until_when, short_mark_end(now))), 'm')
end

-- call_writer calls the first writer that is alive, for some ms later, and returns it; and true if there may be more that
-- were not looked at.
local function call_writer(at, now, ms)
  local heads = entries(0)
  if heads.err or not is_entry(heads[1]) then return nil, false end
  local entry, more, second, _, _, slow = first_alive(heads, nil, at, now)
  if entry then call_in_turn(at.prefix, entry, second, now, ms, slow) end
  return entry, not entry and more
end

-- give makes the owner of an entry the writer of a lock that nobody has, and tells its session. If it returns false
-- the lock is to be deleted. An owner without a name has one hold, and no id.
local function give(entry, at, now)
  if not string.find(entry, '^[VU]') then return false end
  local field = string.sub(entry, 21) .. ':write'
  if type(redis.pcall('HSET', KEYS[1], 'mode', 'write', field, '1')) == 'table' then return false end
  redis.call('PEXPIRE', KEYS[1], number(entry, 5, 8))
  return tell_given(at.prefix, entry, now, 0, 0, 0, 0)
end

-- take_writer_off takes the entry of a writer that comes in off the line, and deletes the line unless more stands there.
local function take_writer_off(entry, more)
  if more or redis.call('ZCOUNT', LINE, READ, '+inf') > 0 then
    redis.call('ZREM', LINE, entry, 'c', 'm', marks(entry))
  else
    redis.call('DEL', LINE)
  end
end

-- let_writer_in gives a lock that nobody has any more to the first writer that is alive. Where others than the line's
-- sessions listen it calls the writer, ms later, for they may be Redisson's readers; where that is not known, at once. ms is 1
-- if a writer leaves, else 0. A writer that polls may have booked, and has its time before the first one is called; a
-- reader has so when a writer leaves, for else the mark keeps it out. heads and booking are what entries returns. It
-- returns the first writer; true if there may be more that were not looked at; and whether it has the lock.
local function let_writer_in(heads, booking, at, now, ms)
  if heads.err or not is_entry(heads[1]) then return nil, false, false end
  local entry, more, second, listeners, _, slow = first_alive(heads, nil, at, now)
  if not entry then return nil, more, false end
  local known = at.publish == 'SPUBLISH' or at.counts == '1'
  local others = others_listen(listeners, entry, at, now)
  local booked = booking and (ms > 0 or string.sub(booking, 2, 2) ~= ':') and due(booking, now)
  if booked or not known or others > 0 or not give(entry, at, now) then
    call_in_turn(at.prefix, entry, second, now, booked or others > 0 and ms or 0, slow)
    return entry, false, false
  end
  take_writer_off(entry, more or booking)
  return entry, false, true
end

-- leave_line takes the entry of a writer that waits no more out of the line. If it was the first, the next one is told
-- that it is that now. If none is alive any more the mark goes: then it returns true if there was one.
local function leave_line(entry, at, now)
  local heads = entries(0)
  if heads.err then return false end
  local score = redis.call('ZSCORE', LINE, 'm')
  redis.call('ZREM', LINE, entry, marks(entry))
  local next, more, _, _, _, slow = first_alive(entries(0), nil, at, now)
  if next and heads[1] == entry then
    redis.call('ZREM', LINE, 'c')
    call(at.prefix, next, 0)
    if slow then call(at.prefix, slow, 0) end
  elseif more and heads[1] == entry then
    call_when_it_ends(at.prefix)
  end
  if next or more then return false end
  redis.pcall('ZREM', LINE, 'm')
  return score and true
end

-- wait_in_line has the entry of a writer wait, or keeps it there. ahead: a newcomer comes behind the first of heads; left
-- is for how long others keep the lock in ms, -1: not known; nil: it is free. It returns what to answer; nil if the
-- writer may come in. Readers that the gate was opened for come before.
local function wait_in_line(entry, heads, ahead, left, at, us, now, again, waiting)
  local ms = not left and expects(now)
  if not left and not ms and heads[1] == entry then return nil end
  local position = again and tonumber(redis.call('ZSCORE', LINE, entry) or nil) or us
  local back = position >= PASSED -- it was passed over, and is heard of again
  if back then position = position - PASSED end
  local bad = enter(entry, position, us, now, at.listens, waiting, again)
  if bad then return (refused(bad, ': the line')) end
  if back then heads = entries(0) elseif not ahead then heads = {entry, heads[1]} end
  if left then return {0, heads[1] == entry and left or -1, now, position} end
  if heads[1] == entry then return ms and {0, ms, now, position} or nil end
  local called = called_until(now)
  if called > now then -- the lock is left to the one that was called; the next one comes then
    if heads[2] == entry or not is_entry(heads[2]) then call(at.prefix, entry, called - now) end
    return {0, -1, now, position}
  end
  pass_over(heads[1], at.prefix, called, now)
  local first, more, second, _, _, slow = first_alive(entries(0), {[entry] = true}, at, now)
  if first == entry then return nil end
  if first then call_in_turn(at.prefix, first, second, now, 0, slow) end
  return {0, not first and more and 1 or -1, now, position}
end
