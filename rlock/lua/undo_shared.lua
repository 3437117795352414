-- undo_shared.lua: takes back a request of acquire_shared.lua whose outcome is
-- unknown: releases the hold if the request was granted, and sees to it that the
-- request is refused should it still be on its way.
--
-- Run twice with the same arguments it gives the same state and the same reply.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted when no hold is left
-- KEYS[2]  the record of the request that is taken back; becomes 'undone'
-- ARGV[1]  owner
-- ARGV[2]  how long the record is kept, in ms
-- ARGV[3]  channel of the lock
-- ARGV[4]  PUBLISH or SPUBLISH
-- Returns  {0, 1}
-- Publishes '0' on the channel when the lock became free.
local record = redis.call('GET', KEYS[2])
if record ~= 'undone' then
  local held = redis.pcall('HGET', KEYS[1], ARGV[1])
  if record and type(held) == 'string' then
    if tonumber(held) > 1 then
      redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
    else
      redis.call('DEL', KEYS[1])
      redis.call(ARGV[4], ARGV[3], '0')
    end
  end
  redis.call('SET', KEYS[2], 'undone', 'PX', ARGV[2])
end
return {0, 1}
