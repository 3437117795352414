-- release.lua: gives back a request's permits, but for those that had expired and others got since; then those who
-- stand in the line get theirs. It also takes an entry out of the line.
-- KEYS[1], KEYS[2] see permits.lua; the free permits are not made anew if they are gone
-- KEYS[3] with ARGV[5]: the line, see serve.lua
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] counts; b: PUBLISH tells all nodes besides  ARGV[4] see keep.lua
-- ARGV[5] what makes a session's channel of its id; '': there is no line
-- ARGV[6] what stands in front of the owner in an entry, which may be in the line; '': none  ARGV[7] the owner
-- ARGV[8] 1: the session may listen to the lock's channel; '': no, and nobody is known to wait
-- ARGV[9] 1: the session has had them for longer than its share: if the first entry is its own too, it leaves
--   them to those who do not stand in the line
-- ARGV[10] and more: the ids
-- Returns receivers, for {0, 1, receivers}; or {0, 0, receivers} if not all were there; or, where others stand in
--   the line, {0, 1 or 0, receivers, 0, 0}
-- Publishes the messages of line.lua; and how many permits are free, if some are and some were given back.
local value, given, heads = redis.pcall('GET', KEYS[1]), 0, nil
local bad = type(value) == 'table' and value
for i = 10, bad and 0 or #ARGV do
  local removed = redis.pcall('ZREM', KEYS[2], ARGV[i])
  if type(removed) == 'table' then bad = removed else given = given + removed end
end
if value and given > 0 then
  value = redis.pcall('INCRBY', KEYS[1], given == 1 and '1' or given)
  if type(value) == 'number' then
    -- With the last permit goes what a lease needed: the end counts from here.
    if ARGV[4] ~= '0' and (redis.pcall('EXISTS', KEYS[2]) == 0 or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4])) then
      redis.call('PEXPIRE', KEYS[1], ARGV[4])
      redis.pcall('PEXPIRE', KEYS[2], ARGV[4]) -- perhaps gone with the last, and the slot moves
    end
    local asks = ARGV[5] ~= '' and (ARGV[8] ~= '' or redis.pcall('EXISTS', KEYS[3]) ~= 0) -- which is quicker than ZRANGE
    heads = asks and redis.pcall('ZRANGE', KEYS[3], 0, 1)
    if not heads or not heads[1] then
      local receivers = value > 0 and redis.call(ARGV[2], ARGV[1], value)
      if ARGV[3] == 'b' and value > 0 then redis.call('PUBLISH', ARGV[1], value) end
      receivers = ARGV[3] == '1' and receivers or -1
      return given == #ARGV - 9 and receivers or {0, 0, receivers}
    end
  else
    bad = value
  end
end
local LINE = ARGV[5] ~= '' and KEYS[3]
-- include refused, keep, serve
local answer, gone = refused(bad)
if answer and not gone and given == #ARGV - 9 then
  -- This user may not count them: they come back as permits that have expired.
  for i = 10, #ARGV do redis.pcall('ZADD', KEYS[2], '0', ARGV[i]) end
end
if answer and not gone then return answer end
local known, receivers, whole = heads, -1, value and not bad and given == #ARGV - 9 and 1 or 0
if LINE and not heads or heads and heads[1] and not is_entry(heads[1]) then
  heads, known = LINE and entries(0), nil -- a session that polls may come first
end
local was = false
if heads and heads[1] and ARGV[6] ~= '' then
  local entry = ARGV[6] .. ARGV[7]
  was = heads[1] == entry and entry
  leave(entry, was)
  known = nil
end
local first = heads and is_entry(heads[1]) and session_of(heads[1]) .. ':'
if first and given > 0 and not value then call(ARGV[5], heads[1], 0) end -- it makes anew what was deleted
value = tonumber(value or nil) or 0 -- it was deleted, or is of another type
if heads and heads[1] and not (ARGV[9] == '1' and first and string.sub(ARGV[7], 1, #first) == first) then
  local at = {listens = ARGV[8] == '1', owner = ARGV[7], channel = ARGV[1], publish = ARGV[2], counts = ARGV[3],
    prefix = ARGV[5]}
  if known and is_entry(known[1]) then
    local us, now = time()
    value = serve(value, math.huge, at, us, now, nil, was, known)
  else
    value = let_in(value, math.huge, at, was)
  end
end
if given > 0 and value > 0 then receivers = redis.call(ARGV[2], ARGV[1], int(value)) end
if ARGV[3] ~= '1' then receivers = -1 end
if heads and is_entry(heads[1]) then return {0, whole, receivers, 0, 0} end
return {0, given > 0 and whole or 0, receivers}
