-- acquire.lua: the vote of one Redis for an owner. A Redis that may have forgotten votes gives none
-- until they are over by themselves: for one lease after it was first seen in its present life. A new
-- one begins when KEYS[2] is gone or names another run: by a restart, a failover, a FLUSHALL.
-- KEYS[1] the lock: hash, owner -> holds
-- KEYS[2] the life of this Redis: a string, the server's run id ('' if that is not to be had) and
--   the time in ms at which the first vote was asked for; no TTL
-- ARGV[1] owner, private  ARGV[2] lease in ms  ARGV[3] for how many ms a new life gives no votes
-- Returns {1, 1, 0, changed}: granted, for the lease at least
--   {0, PTTL in ms, 0, 0, owner}: held by that owner; {-2, ms, 0, 0}: no votes yet, for so many ms
-- include refused, no_lock, clock
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
local life = redis.pcall('GET', KEYS[2])
local bad = refused(held) or refused(life, ': the life of a quorum\'s node is a string')
if bad then return bad end
local ttl = redis.call('PTTL', KEYS[1])
if not held then
  local info = redis.pcall('INFO', 'server')
  local before, since = string.match(life or '', '^(%w*) (%d+)$')
  -- A caller that may not have the run id goes by what the others have written.
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or before or ''
  if before ~= run or tonumber(since) > now then -- or the server's clock was set back
    since = string.format('%.0f', now)
    redis.call('SET', KEYS[2], run .. ' ' .. since)
  end
  local left = since + ARGV[3] - now
  if left > 0 then return {-2, left, 0, 0} end
  if ttl ~= -2 then
    local _, _, owner = no_lock() -- a session that only keeps the lock is asked for it by this name
    return {0, ttl, 0, 0, owner}
  end
  redis.call('HSET', KEYS[1], ARGV[1], 1)
end
if ttl < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {1, 1, 0, held and 0 or 1}
