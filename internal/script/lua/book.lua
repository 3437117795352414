-- book leaves a round to a session that polls: it comes again so many ms later, and what comes free in so
-- many ms before is left to it. LINE, which the script has set, is the line, see line.lua.
-- include int
local BOOKED = -9e15
local function book(session, ms, window, now)
  local from = now + ms - window
  redis.call('ZADD', LINE, int(BOOKED + from * 1000 + window), 'b' .. session)
  if redis.call('PTTL', LINE) < ms + 5000 then redis.call('PEXPIRE', LINE, ms + 5000) end
end
