-- transfer.lua: the lock, which a session holds, has passed from one of its owners to
-- another in memory; the hash follows.
--
-- Run twice with the same arguments it leaves the same state and gives the same first
-- element: the second run finds the new owner there already.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  the ids of holds that were taken by id: set; with a mark for each owner that has
--          entered so. Such a hold is of a later life of the lock than this speaks of
-- ARGV[1]  the owner that the hash knows
-- ARGV[2]  the owner that has the lock now, with one hold
-- ARGV[3]  lease in ms
-- ARGV[4]  channel of the lock
-- ARGV[5]  NUMSUB or SHARDNUMSUB; '' if this node does not know of all who listen
-- Returns  {1, n}   done; the TTL is at least the lease. n is how many connections listen
--                   on the channel, -1 if that is not known
--          {0, 0}   neither owner holds the lock (any more): nothing was changed
--          {-1, 0}  the first owner has more holds than the one: nothing was changed
-- Publishes nothing: the lock has not become free.
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
  return {0, 0} -- something else stands under the name: the lock is gone
end
held = tonumber(held or 0) or 0
if held > 1 then
  return {-1, 0}
end
for i = 1, 2 do
  if redis.pcall('SISMEMBER', KEYS[2], 'entered:' .. ARGV[i]) ~= 0 then
    return {0, 0}
  end
end
if held == 0 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {0, 0}
end
-- In this order: a server out of memory refuses a script that begins with HSET, and a hash
-- without fields is gone, and its TTL with it.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[3]))))
if held == 1 then
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('HDEL', KEYS[1], ARGV[1])
end
local listening = -1
if ARGV[5] ~= '' then
  local reply = redis.pcall('PUBSUB', ARGV[5], ARGV[4])
  if type(reply) == 'table' and not reply.err then
    listening = tonumber(reply[2]) or -1
  end
end
return {1, listening}
