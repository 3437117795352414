-- release.lua: ends all that a private owner has, whatever its count, or takes its entry out of
-- the queue; and gives the lock, when it is free, to the next run. It begins with a command that a
-- server without memory takes, so what follows may run too.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5]  see grant.lua
-- ARGV[6]  owner
-- ARGV[7]  its entry
-- Returns  {0, changed, receivers}
--          receivers  short for {0, 1, receivers}
-- Publishes when the lock became free the message of acquire.lua on the channel of the session
--          that is let in, or, if there is none, '0' on the lock's channel.
local ended = redis.pcall('HDEL', KEYS[1], ARGV[6])
if ended == 1 and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[4]) == 0 then
  local receivers = redis.call(ARGV[2], ARGV[1], '0')
  return ARGV[4] == '1' and receivers or -1
end
-- include refused, grant
local bad, gone = refused(ended)
if bad and not gone then
  return bad
elseif ended ~= 1 then
  leave(ARGV[7])
  if not gone and redis.call('EXISTS', KEYS[1]) == 0 then
    grant() -- it may have been given up, or have run out, with this one in front
  end
  return {0, 0, -1}
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {0, 1, -1} -- the other fields are those of a broken client
end
redis.call('DEL', KEYS[4])
local receivers = not grant() and redis.call(ARGV[2], ARGV[1], '0')
return {0, 1, ARGV[4] == '1' and receivers or -1}
