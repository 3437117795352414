-- look.lua: a sign of life of a session, which keeps its fair entries in the line; and, should the lock be
-- free (its lease has ended, or the session that it was given to did not come), the first of the line is let in.
-- KEYS[1] the lock  KEYS[2] the line, see line.lua  KEYS[3] with ARGV[5]: the fencing token
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] counts  ARGV[4] what makes a session's channel of its id
-- ARGV[5] 1: there are tokens  ARGV[6] and more: entries of the session, at most 50
-- Returns for each entry the ms after which to come again at the latest, -1: unknown, 0: ask by acquire.lua,
--   for it is not in the line, may have the lock, or waits for what is no lock; and last Redis's time in ms
-- Publishes the messages of line.lua, unless the entry that may have the lock is among those of ARGV
local LINE = KEYS[2]
-- include refused, admit

-- is_held reports whether the owner that an i entry names has the lock.
local function is_held(entry)
  return redis.call('HEXISTS', KEYS[1], string.sub(entry, 21 + number(entry, 16, 20) + 32)) == 1
end

local held = redis.pcall('HLEN', KEYS[1])
local bad = refused(held, ': the lock') or refused(redis.pcall('ZCARD', LINE), ': the line')
if bad then return bad end
local us, now = time()
local mine, looks = {}, true
for i = 6, #ARGV do
  local entry = ARGV[i]
  local position = tonumber(redis.call('ZSCORE', LINE, entry) or nil)
  if position then
    mine[entry] = true
    local back = position >= PASSED -- it was passed over, and is heard of again
    if back then position = position - PASSED end
    if looks or back then
      enter(entry, position, us, now, false, nil, looks) -- (or Redis has no memory)
      looks = false
    end
  end
end
local at = {channel = ARGV[1], publish = ARGV[2], counts = ARGV[3], prefix = ARGV[4], token = ARGV[5] == '1' and KEYS[3]}
local ms, endless = -1, false
if held > 0 then
  ms = redis.call('PTTL', KEYS[1])
  endless = ms == -1 -- it is no lock, or none any more: acquire.lua says so
  ms = ms == -2 and 1 or ms -- where time passes inside a script (miniredis) the lock may have ended
end
local heads, booking = entries(0)
local wanted = nil
if held == 0 and is_entry(heads[1]) then
  local called = called_until(now)
  if called > now then
    ms = called - now
    wanted = mine[heads[1]] and is_deaf(heads[1]) and heads[1] or nil
  else
    local first, given, again = admit(heads, at, us, now, nil, mine, false, booking)
    if first and not given then wanted = first end
    if again then ms = 1 end
  end
end
local reply = {}
for i = 6, #ARGV do
  local entry = ARGV[i]
  local came = mine[entry] and string.sub(entry, 1, 1) == 'i' and is_held(entry)
  if not mine[entry] or entry == wanted or came or endless then
    reply[#reply + 1] = 0
  else
    reply[#reply + 1] = (entry == heads[1] or ms ~= -1 and held == 0) and ms or -1
  end
end
reply[#reply + 1] = now
return reply
