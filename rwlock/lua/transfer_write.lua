-- transfer_write.lua: the write side, which a session holds, has passed from one of its
-- owners to another in memory; the hash follows.
--
-- Run twice with the same arguments it leaves the same state and gives the same first
-- element: the second run finds the new owner there already.
--
-- KEYS[1]  the lock: hash, mode -> write, owner:write -> holds of the write side
-- KEYS[2]  marks of waiting writers: zset, id of the attempt -> when the mark expires
-- KEYS[3]  the ids of the holds of the owner that the hash knows: set; deleted
-- KEYS[4]  the same of the owner that has the lock now
-- ARGV[1]  the owner that the hash knows
-- ARGV[2]  the id of its one hold
-- ARGV[3]  the owner that has the lock now
-- ARGV[4]  the id of its one hold
-- ARGV[5]  lease in ms
-- ARGV[6]  channel of the lock
-- ARGV[7]  NUMSUB or SHARDNUMSUB; '' if this node does not know of all who listen
-- Returns  {1, n}   done; the TTL is at least the lease. n is how many connections listen
--                   on the channel, -1 if that is not known
--          {0, 0}   neither owner holds the write side (any more): nothing was changed
--          {-1, 0}  the first owner has more than that one hold: nothing was changed
--          WRONGTYPE error: a key that goes along is of another type, nothing was changed
-- Publishes nothing: the lock has not become free.
local fields = redis.pcall('HMGET', KEYS[1], 'mode', ARGV[1] .. ':write', ARGV[1], ARGV[3] .. ':write')
if fields.err then
  return {0, 0} -- something else stands under the name: the lock is gone
end
local mark = redis.pcall('ZSCORE', KEYS[2], ARGV[4])
local known = redis.pcall('SISMEMBER', KEYS[3], 'w' .. ARGV[2])
local there = redis.pcall('SISMEMBER', KEYS[4], 'w' .. ARGV[4])
if type(mark) == 'table' or type(known) == 'table' or type(there) == 'table' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local held = tonumber(fields[2] or 0) or 0
if fields[1] ~= 'write' or (held <= 0 and there == 0) then
  return {0, 0}
end
if held > 1 or (held == 1 and (fields[3] or known == 0)) then
  return {-1, 0}
end
if held == 0 and not fields[4] then
  return {0, 0}
end
-- First of all: a server out of memory refuses a script that begins with HSET.
local ttl = string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[5])))
redis.call('PEXPIRE', KEYS[1], ttl)
if held == 1 then
  redis.call('HSET', KEYS[1], ARGV[3] .. ':write', 1)
  redis.call('HDEL', KEYS[1], ARGV[1] .. ':write')
  redis.call('DEL', KEYS[3], KEYS[4])
  redis.call('SADD', KEYS[4], 'w' .. ARGV[4])
end
redis.call('ZREM', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[4], ttl)
local listening = -1
if ARGV[7] ~= '' then
  local reply = redis.pcall('PUBSUB', ARGV[7], ARGV[6])
  if type(reply) == 'table' and not reply.err then
    listening = tonumber(reply[2]) or -1
  end
end
return {1, listening}
