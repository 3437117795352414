-- How those who stand in the line of a semaphore or a counter get in, see line.lua: in the order of arrival, by size.
-- LINE, which the script has set, is the line; of a semaphore it needs keep and KEYS[2], see permits.lua.
-- Besides, "k<entry>" -> KEPT and since when an entry that is the first is for more than is free, in ms.
-- include newest
local KEPT = 8.2e15
-- Who comes to be the first asks so much later if it is that still: as long as it would wait before it listens.
local FIRST_MS = 5
-- In the reply to the first of the line: what time can bring to it is not known. It is longer than any poll floor.
local NEVER = 2e9

-- size returns for how many permits an entry is; of more than 60 million, which have no room in it, not all.
local function size(entry)
  return string.sub(entry, 1, 1) == 'C' and tonumber(string.sub(entry, 2, 6), 36) or number(entry, 2, 4)
end

-- kept_for returns for how many ms more the first entry, which is for more than is free, keeps what comes free
-- for itself: 1 s, 2 s, 4 s and so on up to 32 s, with 1 s in between in which what fits may pass. Without
-- that two who hold permits, and want more, could wait for each other.
local function kept_for(entry, now)
  local since = redis.call('ZSCORE', LINE, 'k' .. entry)
  if not since then redis.pcall('ZADD', LINE, int(KEPT + now), 'k' .. entry) end
  local past, keeps = since and now - (tonumber(since) - KEPT) or 0, 1000
  while past >= keeps do
    past = past - keeps
    if past < 1000 then return 0 end
    past, keeps = past - 1000, math.min(2 * keeps, 32000)
    if keeps == 32000 then past = past % 33000 end
  end
  return keeps - past
end

-- call_who_fits has the first one behind an entry come then whose request fits.
local function call_who_fits(entry, free, prefix, ms)
  local position = redis.call('ZSCORE', LINE, entry)
  for _, next in ipairs(redis.call('ZRANGEBYSCORE', LINE, position, '+inf', 'LIMIT', 1, 16)) do
    if not is_entry(next) then return end
    if size(next) <= free then return call(prefix, next, ms) end
  end
end

-- give gives permits to an entry, and tells its session. It returns how many that took: fewer, and the session is not
-- told, if it has them, since it has asked without the line while the slot moved. It returns false, and has changed
-- nothing, if they cannot be given here, or the session cannot be told. The ids are those of package idgen.
local function give(entry, n, at, now)
  if not string.find(entry, '^[PQ]') then return false end
  local owner = string.sub(entry, 21)
  local hash = string.sub(redis.sha1hex(session_of(entry)), 1, 8) .. string.sub(redis.sha1hex(owner), 1, 16)
  local id = string.gsub(hash, '..', function(byte) return string.char(tonumber(byte, 16)) end)
  local free = redis.pcall('DECRBY', KEYS[1], int(n))
  if type(free) == 'table' then return false end
  local ids, args, lease = {}, {}, number(entry, 5, 8)
  local expiry = int(now + 1 + lease)
  for i = 0, n - 1 do
    ids[#ids + 1] = id .. string.char(0, 0, 0, i)
    args[#args + 1], args[#args + 2] = expiry, ids[#ids]
  end
  local added = redis.pcall('ZADD', KEYS[2], 'GT', unpack(args)) -- never sooner
  if type(added) == 'number' and added < n then
    redis.call('INCRBY', KEYS[1], int(n - added))
    return added
  end
  if type(added) == 'table' or not tell_given(at.prefix, entry, now, 0, 0, 0, 0) then
    redis.pcall('ZREM', KEYS[2], unpack(ids))
    redis.call('INCRBY', KEYS[1], int(n))
    return false
  end
  keep(lease + 1000, true) -- if it has an end, that comes no sooner than theirs
  return n
end

-- leave takes an entry out of the line, and deletes the line if no others stand there. free says that what is free is
-- left no longer to the entry that was called.
local function leave(entry, free)
  redis.call('ZREM', LINE, entry, free and 'c' or '', marks(entry))
  sweep()
end

-- serve lets in whom it can of so many permits that are free, at most 16. own is the entry of a session that asks,
-- which is not given them; or nil. The first of the line listens to the channel, and knows when a permit expires: one
-- that comes to be the first, and still is after a moment, asks. was is an entry that was the first and has left; or
-- nil. known are the first two members of the line, or nil. It returns how many are free then; and whether own may
-- have its permits now, or is to ask again at once.
local function serve(free, limit, at, us, now, own, was, known)
  local mine, from, left, head = own and {[own] = true}, 0, was, nil
  local granted, again, rest, had = false, false, false, free
  for i = 1, 17 do
    if free <= 0 then break end
    if i == 17 then -- if these came in, the next may too
      again = free < had
      rest = again and not own
      -- All of these are for more than is free, and what fits may pass: so may own, behind as many as nobody looks at.
      granted = not again and own and size(own) <= free and called_until(now) - patience(own) - now <= 1
      break
    end
    local heads, booking = known, nil
    known = nil
    if not heads then heads, booking = entries(from) end
    if heads.err then break end
    was = was or heads[1]
    local entry, more, second, listeners, scores, slow = first_alive(heads, mine, at, now, from)
    if not entry then
      again = more
      if more and not own then call_newest(at.prefix, 0) end
      break
    end
    if from == 0 then head = slow or entry end
    local n = size(entry)
    if n > free then
      local ms = 0
      if n > limit then
        call(at.prefix, entry, 0) -- it hears why
      elseif from == 0 then
        ms = kept_for(entry, now)
      end
      if ms > 0 then
        if is_entry(second) then call_who_fits(entry, free, at.prefix, ms) end
        if own and own ~= entry and size(own) <= free then call(at.prefix, own, ms) end
        break
      end
      from = from + 1
    elseif entry == own then
      -- It may have been called for later, behind a session that polls. (A millisecond is the courtesy to listeners.)
      local early = called_until(now) - patience(own) - now
      granted = early <= 1
      if not granted then call(at.prefix, own, early) end
      break
    else
      local called = called_until(now, scores and (scores[2] or 0))
      if called > now then
        if own and own ~= head then call(at.prefix, own, called - now) end
        break
      end
      if own and called > 0 and from == 0 and now - called < 1000 then
        pass_over(entry, at.prefix, called, now)
      else
        local open = from == 0 and (booking and due(booking, now) or courtesy(listeners, entry, at, us, now) and 1)
        local given = not open and give(entry, n, at, now)
        if not given then
          call_in_turn(at.prefix, entry, second, now, open or 0)
          if head == entry then head = was end -- it is called
          break
        end
        free = free - given
        take_off(entry, more or from > 0 or booking)
        if from == 0 then head = slow or second or more and entries(0)[1] end
      end
    end
  end
  if left and not head then head = entries(0)[1] end
  local heard = head ~= was and head ~= own and is_entry(head) and call(at.prefix, head, FIRST_MS)
  if rest and heard == 0 then call_newest(at.prefix, 0) end
  return free, granted, again
end

-- wait_in_line has an entry wait, or keeps it there, and serves those who stand there. It returns an error to
-- answer, or false; then what serve does, the entry's position, and whether it is the first.
local function wait_in_line(entry, heads, free, limit, at, us, now, again, listens, waiting)
  local position = again and tonumber(redis.call('ZSCORE', LINE, entry) or nil) or us
  if position >= PASSED then position = position - PASSED end -- it was passed over, and is heard of again
  local bad = enter(entry, position, us, now, listens == '1', waiting, again)
  if bad then return (refused(bad, ': the line')) end
  local left, granted, more = serve(free, limit, at, us, now, entry)
  local first = not is_entry(heads[1]) or heads[1] == entry or entries(0)[1] == entry
  return false, left, granted, more, position, first
end

-- let_in serves those who stand in the line, if there is one, and returns how many are free then. was is the entry
-- of the first, if that has left.
local function let_in(free, limit, at, was)
  if not LINE or free <= 0 and not was or redis.pcall('EXISTS', LINE) ~= 1 then return free end
  local us, now = time()
  return (serve(free, limit, at, us, now, nil, was))
end
