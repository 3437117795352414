-- release_shared.lua: takes holds away from an owner whose id several processes may
-- use; the lock is free when no process holds it any more.
--
-- The outcome is remembered next to the lock, so that run twice with the same
-- arguments it gives the same state and the same reply.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted when no hold is left
-- KEYS[2]  the record of this request: string with a TTL, '<holds left>'
-- ARGV[1]  owner
-- ARGV[2]  how many holds to release
-- ARGV[3]  how long the record is kept, in ms
-- ARGV[4]  channel of the lock
-- ARGV[5]  PUBLISH or SPUBLISH
-- Returns  {holds left, changed}; changed is 0 if the owner held nothing
-- Publishes '0' on the channel when the lock became free.
local record = redis.call('GET', KEYS[2])
if record then
  return {tonumber(record), 1}
end
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
  return {0, 0} -- something else stands under the name: the hold is gone
end
held = tonumber(held or 0) or 0
if held <= 0 then
  return {0, 0}
end
local left = held - tonumber(ARGV[2])
if left > 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], -tonumber(ARGV[2]))
else
  left = 0
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[5], ARGV[4], '0')
end
redis.call('SET', KEYS[2], string.format('%.0f', left), 'PX', ARGV[3])
return {left, 1}
