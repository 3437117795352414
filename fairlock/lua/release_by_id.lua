-- release_by_id.lua: ends holds that have ids, and gives the lock to the next run when it is
-- free; takes back acquisitions whose outcome is unknown, and the entries of named owners that
-- leave the queue.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5]  see grant.lua
-- ARGV[6]   owner
-- ARGV[7]   1: the owner is private: the holds that stay are all of this session
-- ARGV[8]   the TTL in ms that the holds deserve which stay; 0 leaves it
-- ARGV[9]   what an entry of this session has in front of an id
-- ARGV[10]  how many ids follow of holds that end, or of waiters that leave; the TTL is left if an
--           extension has voided the first one
-- ARGV[i]   i > 10: those; then, of a named owner and with a TTL, the ids of the holds that
--           this session keeps
-- Returns  {holds left, changed, receivers}; changed is 0 if none of the holds was there
--          WRONGTYPE error if the ids are unusable: nothing was changed
-- Publishes what release.lua does, when the lock became free.
-- include refused, end_holds, grant
local held = redis.pcall('HGET', KEYS[1], ARGV[6])
local bad, gone = refused(held)
if gone then
  return {0, 0, -1} -- something else stands under the name: the holds are gone
end
local kept = 11 + ARGV[10]
local _, unusable = refused(redis.pcall('SCARD', KEYS[4]))
if bad or unusable then
  return bad or (refused({err = 'wrong kind of value'}, ': the ids of holds'))
end
for i = 11, ARGV[7] == '1' and 0 or kept - 1 do
  leave(ARGV[9] .. ARGV[i] .. ARGV[6])
end
held = tonumber(held or 0) or 0
if held <= 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then
    grant() -- it may have been given up, or have run out, with this one in front
  end
  return {0, 0, -1}
end
local reply = end_holds(KEYS[4], ARGV[6], held, 11, kept, ARGV[8], ARGV[7])
if reply then
  return reply
end
local receivers = not grant() and redis.call(ARGV[2], ARGV[1], '0')
return {0, 1, ARGV[4] == '1' and receivers or -1}
