-- release.lua: ends all that a private owner has, whatever its count: a nested acquisition
-- that came late must not keep the lock.
--
-- KEYS[1]  the lock: hash, owner -> holds; gone with its last field
-- KEYS[2]  optional: the ids of its holds: set; deleted
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock
-- ARGV[3]  PUBLISH or SPUBLISH
-- ARGV[4]  1: that tells how many connections have heard it; 0: it counts one node only
-- Returns  receivers, for {0, 1, receivers}
--          {0, changed, receivers}
-- Publishes '0' on the channel: the lock is free. (A broken client may have left a field more;
--          then those who wait look once in vain.)
local ended = redis.pcall('HDEL', KEYS[1], ARGV[1])
if ended == 1 then
  if KEYS[2] then
    redis.call('DEL', KEYS[2])
  end
  local receivers = redis.call(ARGV[3], ARGV[2], '0')
  return ARGV[4] == '1' and receivers or -1
end
-- include refused
local bad, gone = refused(ended)
return bad and not gone and bad or {0, 0, -1}
