-- wanted tells the session of the owner that has the lock that others want it, if the session may keep it: the owner's
-- number begins with a 0 then. Without a prefix it is that of all sessions.
local function wanted(owner, prefix)
  local session = owner and string.match(owner, '^(.+):0%d+$')
  if session then
    redis.pcall('PUBLISH', (prefix or 'relock_session:') .. session, 'wanted:' .. #owner .. ':' .. owner .. KEYS[1])
  end
end
