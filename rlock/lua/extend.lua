-- extend.lua: gives a held lock a new end. Run twice it sets the same end, counted
-- from the later run.
--
-- The end moves closer only if every hold of the owner is one of this session's. Their
-- number alone does not say so: where an owner is shared the lock may have been lost, and
-- what is counted now may be what another process holds.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  the ids of holds that were taken by id: set. Left out where the session
--          knows of none, so that a slot on the move cannot part the keys
-- ARGV[1]  owner
-- ARGV[2]  time to live in ms, from now
-- ARGV[3]  the holds of this session, for which the end may also move closer; 0: only
--          further away
-- ARGV[i]  i > 3: the ids of this session's holds: all of them, but for the one that
--          acquire.lua gave
-- Returns  1; 0 if this session does not hold it (any more); 2 without KEYS[2]: nothing
--          was done, since whether the end may move closer shows only with KEYS[2]
--          WRONGTYPE error: the ids are of another type, nothing was changed
-- Publishes nothing.
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
held = type(held) ~= 'table' and tonumber(held or 0) or 0
if held <= 0 then
  return 0
end

local ids, there, later = #ARGV - 3, 0, 0
if KEYS[2] then
  later = redis.pcall('SISMEMBER', KEYS[2], 'entered:' .. ARGV[1])
  if type(later) == 'table' then
    return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
  end
  for i = 4, #ARGV do
    there = there + redis.call('SISMEMBER', KEYS[2], ARGV[i])
  end
  if there == 0 and (ids > 0 or later == 1) then
    return 0 -- what is counted belongs to a later life of the lock
  end
end

local ours = tonumber(ARGV[3])
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then
  if held ~= ours or there < ids then
    return 1
  elseif ours > ids and not KEYS[2] then
    return 2
  elseif ours > ids and later == 1 then
    return 1 -- acquire.lua's was of an earlier life
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if KEYS[2] then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
return 1
