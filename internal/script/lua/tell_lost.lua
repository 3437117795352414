-- tell_lost tells the session of an owner that its lock was forced, if the owner is
-- '<session id>:<number>'. It is always PUBLISH, which is heard in the whole Cluster.
-- prefix makes a session's channel out of a session id.
local function tell_lost(owner, prefix)
  local session = string.match(owner, '^(.+):%d+$')
  if session then
    redis.call('PUBLISH', prefix .. session, 'lost:' .. #owner .. ':' .. owner .. KEYS[1])
  end
end
