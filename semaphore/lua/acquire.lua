-- acquire.lua: gives a request permits, all or none. One that is there already is not taken again.
-- A caller that waits enters the line if it cannot have them, or others wait; see serve.lua.
-- KEYS[1], KEYS[2] see permits.lua  KEYS[3] with ARGV[7]: the line
-- ARGV[1] lease in ms  ARGV[2] the limit of a new semaphore  ARGV[3] channel  ARGV[4] publish  ARGV[5] see keep.lua
-- ARGV[6] 1: the reply tells when the next of all expires; 0: it need not
-- ARGV[7] what stands in front of the owner in its entry; '': it does not wait in the line, and the ids follow; b: it
--   polls  ARGV[8] 1: its entry may be in the line  ARGV[9] 1: the session may listen to the lock's channel
-- ARGV[10] counts  ARGV[11] what makes a session's channel of its id  ARGV[12] how many callers of it wait; 0: as before
-- ARGV[13] the owner, for b the session  ARGV[14] for b: in how many ms it comes again  ARGV[15] for how many ms
--   before that the permits are to be left to it  ARGV[16] and more: the ids
-- Returns {1, ms, 0, changed, free, -1}: granted, for the lease at least; free are left (below 0: the
--   limit was lowered), and the next of all expires in ms (-1: none)
--   free: short for that, if no others are taken or ARGV[6] is 0; -ms: short for that, of free 0
--   {0, ms, 0, 0, free, limit}: not enough are free; {-2, limit, 0, 0}: the limit is less than that
--   {0, ms, Redis's time in ms, position, free, limit}: it stands in the line; ms is -1 if it is not the first; or NEVER
-- Publishes how many permits are free, if some are, and permits had expired or the semaphore is new; and
--   the messages of line.lua.
local first_id = ARGV[7] == '' and 8 or 16
local waits = first_id == 16 and ARGV[7] ~= 'b'
local n, value, t = #ARGV - first_id + 1, redis.pcall('GET', KEYS[1]), redis.call('TIME')
local free, added, ends, heads = tonumber(value) or 0, 0, nil, nil
-- Mostly enough are free, none expires within this second, and the semaphore has no end. What Redis
-- does not take for an integer it refuses to count down. (It is slow to write a score into a reply.)
if free >= n and value >= '1' and free < 1e15 and ARGV[5] == '0' then
  local there = redis.call('EXISTS', unpack(KEYS, 2, waits and 3 or 2))
  ends = there == 0 and -2 or redis.call('PTTL', KEYS[2])
  if there ~= (ends == -2 and 0 or 1) then ends = nil end -- there is a line
end
if ends and redis.call('PTTL', KEYS[1]) == -1 and (ends == -2
    or ends == -1 and redis.pcall('ZCOUNT', KEYS[2], '-inf', t[1] .. '999') == 0) then
  local left = redis.pcall('DECRBY', KEYS[1], n == 1 and '1' or n)
  if type(left) == 'number' then
    local expiry = string.format('%d', t[1] * 1000 + t[2] / 1000 + 1 + ARGV[1])
    for i = first_id, #ARGV do
      local one = redis.pcall('ZADD', KEYS[2], 'NX', expiry, ARGV[i])
      if type(one) == 'table' then -- this user may not: then not even the first
        redis.call('INCRBY', KEYS[1], n)
        return one
      end
      added = added + one
    end
    if added == n and (ends == -2 or ARGV[6] == '0') then return left end
    if added == n then
      local lowest = redis.call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')
      local ms = lowest[2] - t[1] * 1000 - math.floor(t[2] / 1000)
      return left == 0 and -ms or {1, ms, 0, 1, left, -1}
    end
    redis.call('INCRBY', KEYS[1], n - added) -- an earlier run has taken them
  end
end
local LINE = waits and KEYS[3]
-- include refused, keep, serve, behind, clock, permits
local us, expiry = t[1] * 1000000 + t[2], now + 1 + ARGV[1]
local at = {channel = ARGV[3], publish = ARGV[4], counts = ARGV[10], prefix = ARGV[11]}
local new, tell = not value, back > 0 or not value
if new then
  value = tonumber(ARGV[2]) - taken -- permits of one whose counter was deleted still count
end
local alive = 0 -- of those that an earlier run has granted
for i = first_id, redis.call('ZSCORE', KEYS[2], ARGV[first_id]) and #ARGV or 0 do
  alive = alive + (redis.call('ZSCORE', KEYS[2], ARGV[i]) and 1 or 0)
end
local granted, limit = alive == n or value >= n, value + taken
local entry = waits and ARGV[7] .. ARGV[13]
heads = heads or LINE and entries(0) or {}
if heads.err then return (refused(heads, ': the line')) end
if not granted and n > limit then
  if entry and heads[1] then
    leave(entry, heads[1] == entry)
    if not new then value = let_in(value, limit, at, heads[1] == entry and entry) end
  end
  if tell and not new and value > 0 then redis.call(ARGV[4], ARGV[3], int(value)) end
  return {-2, limit, 0, 0}
end
local bad = first_id == 16 and not waits and not granted and refused(redis.pcall('ZCARD', KEYS[3]), ': the line')
if bad then return bad end
if new then
  redis.call('SET', KEYS[1], int(value))
  keep(tonumber(ARGV[5])) -- also if it is refused: others' permits may be all that is left of an earlier one
end
local position, first, more = 0, heads[1] == entry, false
if entry and alive < n and (not granted or is_entry(heads[1])) then
  bad, value, granted, more, position, first =
    wait_in_line(entry, heads, value, limit, at, us, now, ARGV[8] == '1', ARGV[9], ARGV[12])
  if bad then return bad end
end
if granted then
  if alive < n then value = redis.call('DECRBY', KEYS[1], int(n - alive)) end
  for i = first_id, #ARGV do
    local one = redis.pcall('ZADD', KEYS[2], 'GT', int(expiry), ARGV[i]) -- never sooner
    if type(one) == 'table' then
      redis.call('INCRBY', KEYS[1], int(n - alive))
      return one
    end
    added = added + one
  end
  if added < n - alive then -- of an earlier run the first has been given back since, and others have not
    value = redis.call('INCRBY', KEYS[1], int(n - alive - added))
  end
  keep(tonumber(ARGV[5]))
  if entry and (heads[1] or position > 0) then
    leave(entry, true)
    value = let_in(value, limit, at, first and entry)
  end
  position = 0
elseif first_id == 16 and not waits and value <= 0 then -- else what is left to it would lie idle: it is not enough
  LINE = KEYS[3]
  book(ARGV[13], tonumber(ARGV[14]), tonumber(ARGV[15]), now)
end
if tell and value > 0 then redis.call(ARGV[4], ARGV[3], int(value)) end
if position > 0 and (more or not first) then return {0, more and 1 or -1, now, position, value, limit} end
local lowest = redis.call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')
local ms = (tonumber(lowest[2] or 0) or 0) - now
if ms <= 0 or ms + now >= 922337203685477 then ms = -1 end -- Redisson's expiry of one without a lease
if position > 0 then
  return {0, ms < 0 and NEVER or ms, now, position, value, limit}
end
return {granted and 1 or 0, ms, 0, granted and added > 0 and 1 or 0, value, granted and -1 or limit}
