-- release.lua: ends holds that have ids, and takes back acquisitions whose outcome is unknown; the
-- lock is free when the owner has no hold left: then the first of the line has it. Without ids it ends
-- all that a private owner has, whatever its count: a nested acquisition that came late must not keep
-- the lock. A session whose callers wait can enter the line anew in the run that ends its hold.
-- KEYS[1] the lock  KEYS[2] with ARGV[5]: the line, see line.lua
-- KEYS[i] next, with ARGV[6]: the ids, see acquire.lua; deleted at the end
-- KEYS[i] the last one, with ARGV[7]: the fencing token
-- ARGV[1] owner  ARGV[2] channel  ARGV[3] publish  ARGV[4] counts; b: PUBLISH tells all nodes besides
-- ARGV[5] what makes a session's channel of its id; '': there is no line
-- ARGV[6] 1: the claim may have made the ids; left out like the rest: no, and nobody is known to wait  ARGV[7] 1: there are tokens
-- ARGV[8] what stands in front of the owner in its entry, which may be in the line; '': none
-- ARGV[9] the entry that the session enters anew, or ''
-- ARGV[10] 1: the session may listen to the lock's channel  ARGV[11] how many of its callers wait
-- ARGV[12] of a fair entry of ARGV[9]: its place, at which it comes in before anybody is let in; '', or left out
--   like the rest: it comes in behind  ARGV[13] the number of its last caller
-- ARGV[14] the TTL in ms that holds which stay deserve; 0 leaves it; left out like the rest: no ids
-- ARGV[15] 1: the owner is private  ARGV[16] how many ids follow of holds that end
-- ARGV[17] and more: those, see end_holds; then, of a named owner and with a TTL, those that stay
-- Returns receivers, for {0, 1, receivers}; or {holds left, changed, receivers}; or, where others stand in
--   the line, {0, 1, receivers, position, Redis's time in ms}: that of the entry of ARGV[9], 0 without one;
--   -1: there may be more to be let in, see line.lua: it is to be sent again
-- Publishes the messages of line.lua, and '0' when the lock became free. (Where a broken client has left a
--   field in vain.)
local line = ARGV[5] ~= '' and KEYS[2]
-- Where nobody is known to wait, EXISTS answers sooner than ZRANGE that nobody does.
local empty = line and not ARGV[6] and redis.pcall('EXISTS', line) == 0
local heads = line and not empty and redis.pcall('ZRANGE', line, 0, 1)
local ended, booking
if not ARGV[12] and not (heads and heads[1]) then
  ended = redis.pcall('HDEL', KEYS[1], ARGV[1])
  if ended == 1 then
    if ARGV[6] == '1' then redis.call('DEL', KEYS[line and 3 or 2]) end
    local receivers = redis.call(ARGV[3], ARGV[2], '0')
    if ARGV[4] == 'b' then redis.call('PUBLISH', ARGV[2], '0') end
    return ARGV[4] == '1' and receivers or -1
  end
end
local LINE = KEYS[2]
-- include refused, end_holds, admit
if heads and heads[1] and string.sub(heads[1], 1, 1) == 'b' then heads, booking = entries(0) end
local at = {listens = ARGV[10] == '1', owner = ARGV[1], channel = ARGV[2], publish = ARGV[3], counts = ARGV[4], prefix = ARGV[5],
  token = ARGV[7] == '1' and KEYS[#KEYS]}
local ids = KEYS[line and 3 or 2]
local held = ended or redis.pcall('HGET', KEYS[1], ARGV[1])
local bad, gone = refused(held)
if bad and not gone then return bad end
if line and ARGV[8] and ARGV[8] ~= '' then
  leave(ARGV[8] .. ARGV[1], at)
  heads, booking = entries(0)
end
if bad or (tonumber(held or 0) or 0) <= 0 then
  for i = 17, not bad and ARGV[16] and 16 + ARGV[16] or 0 do redis.pcall('SREM', ids, ARGV[i]) end
  local _, given, again
  if heads and is_entry(heads[1]) and redis.call('EXISTS', KEYS[1]) == 0 then -- the line goes on
    local us, now = time()
    _, given, again = admit(heads, at, us, now, nil, nil, false, booking)
  end
  if again then return {0, 0, -1, -1, 0} end
  return {0, 0, -1} -- the ids, if they are still there, speak of an earlier life
end
local leaving = not ARGV[14] and ARGV[1] -- else the key goes with the last id; while a slot moves it is not asked for then
if ARGV[14] then
  local reply = end_holds(ids, ARGV[1], tonumber(held), 17, 17 + ARGV[16], ARGV[14], ARGV[15])
  if reply then return reply end
elseif ARGV[6] == '1' then
  redis.call('DEL', ids)
end
local given, others, position, us, now = false, nil, 0, 0, 0
local anew, place = (ARGV[9] or '') ~= '' and ARGV[9], line and tonumber(ARGV[12] or '')
if place or heads and is_entry(heads[1]) then us, now = time() end
if place and not enter(anew, place, us, now, false, ARGV[11], false, ARGV[13]) then
  position, anew = place, nil
  heads, booking = entries(0)
end
if heads and is_entry(heads[1]) then
  if string.sub(heads[1], 21) == ARGV[1] then -- its own: it got in while the line could not be named
    redis.call('ZREM', line, heads[1])
    heads, booking = entries(0)
  end
  local again
  others, given, again = admit(heads, at, us, now, leaving, nil, anew, booking)
  if others and anew then
    -- A fair one gets here if Redis had no memory for it before anything was written: it keeps its place.
    local comes = place or us
    if not enter(anew, comes, us, now, not place and ARGV[10] == '1', ARGV[11], false, place and ARGV[13]) then position = comes end
  end
  if again then others, position = true, -1 end
else
  if leaving then redis.call('HDEL', KEYS[1], leaving) end
  if heads and not heads.err and not booking then redis.call('DEL', line) end -- nobody stands there any more
end
local receivers = given and -1 or redis.call(ARGV[3], ARGV[2], '0')
if ARGV[4] == 'b' then redis.call('PUBLISH', ARGV[2], '0') end
if ARGV[4] ~= '1' then receivers = -1 end
if others then return {0, 1, receivers, position, now} end
return {0, 1, receivers}
