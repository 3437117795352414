-- How those who stand in the line of a semaphore or a counter get in, see line.lua: in the order of arrival, by size.
-- LINE, which the script has set, is the line; of a semaphore it needs keep and KEYS[2], see permits.lua.
-- Besides, "k<entry>" -> KEPT and since when an entry that is the first is for more than is free, in ms.
-- include line
local KEPT = 8.2e15

-- size returns for how many permits an entry is.
local function size(entry) return number(entry, 2, string.sub(entry, 1, 1) == 'C' and 8 or 4) end

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

-- give gives permits to an entry, and tells its session. It returns false, and has changed nothing, if they
-- cannot be given here, or the session cannot be told. The ids are those of package permitid.
local function give(entry, n, at, now)
  if not string.find(entry, '^[PQ]') then return false end
  local owner = string.sub(entry, 21)
  local hash = string.sub(redis.sha1hex(session_of(entry)), 1, 8) .. string.sub(redis.sha1hex(owner), 1, 16)
  local id = string.gsub(hash, '..', function(byte) return string.char(tonumber(byte, 16)) end)
  local free = redis.pcall('DECRBY', KEYS[1], int(n))
  if type(free) == 'table' then return false end
  local ids, args, expiry = {}, {}, int(now + 1 + number(entry, 5, 8))
  for i = 0, n - 1 do
    ids[#ids + 1] = id .. string.char(0, 0, 0, i)
    args[#args + 1], args[#args + 2] = expiry, ids[#ids]
  end
  local told = redis.pcall('ZADD', KEYS[2], unpack(args))
  if type(told) ~= 'table' then
    told = redis.pcall('PUBLISH', at.prefix .. session_of(entry), 'granted:' .. int(now) .. ':0:0:0:0:' .. #entry .. ':'
      .. entry .. KEYS[1])
  end
  if type(told) == 'table' then
    redis.pcall('ZREM', KEYS[2], unpack(ids))
    redis.call('INCRBY', KEYS[1], int(n))
    return false
  end
  keep(0)
  return true
end

-- off takes an entry out of the line, which goes with the last one; more says that there are others, nil that
-- this is not known.
local function off(entry, n, more)
  if n > 1 then redis.call('ZREM', LINE, 'k' .. entry) end
  take_off(entry, more ~= false)
  local rest = more == nil and redis.pcall('ZRANGE', LINE, 0, 0)
  if rest and rest[1] and not is_entry(rest[1]) and string.sub(rest[1], 1, 1) ~= 'b' then redis.call('DEL', LINE) end
end

-- serve lets in whom it can of so many permits that are free, at most 16. own is the entry of a session that asks,
-- which is not told; or nil. It returns how many are free then; whether own may have its permits now; and
-- after how many ms own is to ask again, if that is known.
local function serve(free, limit, at, us, now, own)
  local mine, from = own and {[own] = true}, 0
  for _ = 1, 16 do
    if free <= 0 then break end
    local heads, booking = entries(from)
    if heads.err then break end
    local entry, more, second, listeners = first_alive(heads, mine, at, now, from)
    if not entry then break end
    local n = size(entry)
    if n > free then
      if n > limit then
        call(at.prefix, entry, 0) -- it hears why
      elseif from == 0 then
        local ms = kept_for(entry, now)
        if ms > 0 then
          if second ~= own and is_entry(second) then call_who_fits(entry, free, at.prefix, ms) end
          return free, false, entry ~= own and ms or nil
        end
      end
      from = from + 1
    elseif entry == own then
      return free, true
    else
      local called = called_until(now)
      if called > now then return free, false, called - now end
      if own and called > 0 and from == 0 and now - called < 1000 then
        pass_over(entry, at.prefix, called, now)
      else
        local open = from == 0 and (booking and due(booking, now) or courtesy(listeners, entry, at, us, now) and 1)
        if open or not give(entry, n, at, now) then
          call_in_turn(at.prefix, entry, second, now, open or 0)
          return free, false
        end
        free = free - n
        off(entry, n, (more or from > 0 or booking) and true or false)
      end
    end
  end
  return free, false
end

-- wait_in_line has an entry wait, or keeps it there, and serves those who stand there. It returns an error to
-- answer, or false; then what serve does, and the entry's position.
local function wait_in_line(entry, heads, free, limit, at, us, now, again, listens, waiting)
  local position = again and tonumber(redis.call('ZSCORE', LINE, entry) or nil) or us
  if position >= PASSED then position = position - PASSED end -- it was passed over, and is heard of again
  local bad = enter(entry, position, us, now, listens == '1', waiting, again)
  if bad then return (refused(bad, ': the line')) end
  local left, granted, ms = serve(free, limit, at, us, now, entry)
  local first = not is_entry(heads[1]) or heads[1] == entry
  return false, left, granted, ms, position, first
end

-- let_in serves those who stand in the line, if there is one, and returns how many are free then.
local function let_in(free, limit, at)
  if not LINE or free <= 0 or redis.pcall('EXISTS', LINE) ~= 1 then return free end
  local us, now = time()
  return (serve(free, limit, at, us, now))
end
