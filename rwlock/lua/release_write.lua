-- release_write.lua: ends holds of the write side, and takes back acquisitions of it whose outcome is
-- unknown, with the marks that they left. If the owner has read holds too, and their lease is not
-- over, the lock becomes a read lock. Either way waiting readers get their chance now: the marks of
-- the writers that wait are taken away, and come back when those are refused again.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[10] (none is left out), Returns: see ending.lua
-- Publishes '1' when no writer is left, and '0' behind it if that may have been heard: a waiter of
--   Redisson that is just asking takes no notice of the first, and would sleep until the lease that it
--   saw ends. '1' alone when the last mark of a waiting writer goes while readers may come in
if ARGV[5] == '2' and redis.pcall('HLEN', KEYS[1]) == 2
    and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 1 then
  -- The mode and the write side of this owner are all there is.
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[5])
  local receivers = redis.call(ARGV[3], ARGV[2], '1')
  if receivers == 0 and ARGV[4] == '1' then return 0 end
  redis.call(ARGV[3], ARGV[2], '0')
  return ARGV[4] == '1' and receivers or -1
end
-- include ending
local ended = take_out('w', writes, reads, kept)
local unmarked = each('ZREM', KEYS[3], '', 10, marks > 0 and kept - 1 or 0)
if writes <= 0 or ended == 0 then
  if writes <= 0 and reads <= 0 then remove(ids) end -- of a life of the lock that is over
  if unmarked > 0 and mode ~= 'write' then
    local mark = redis.pcall('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    if (tonumber(mark[2]) or 0) <= now then publish('1') end
  end
  return {writes, 0, -1}
end
local ttl = redis.call('PTTL', KEYS[1])
local held = math.max(writes - ended, 0)
local alone = keep > 0 and (private or each('SISMEMBER', ids, 'w', kept, others - 1) == held)
if held > 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', -ended)
else
  redis.call('HDEL', KEYS[1], ARGV[1] .. ':write')
end
local before = reads > 0 and expiry or 0
expiry = before
if reads > 0 and alone and (private or each('SISMEMBER', ids, 'r', others, #ARGV) == reads) then
  expiry = math.min(expiry, now + 1 + keep) -- all that is left is this session's
end
if tonumber(ARGV[7]) > 0 and reads > 0 then
  -- Its holder has trusted the lock for as long as the write side was good for.
  expiry = math.max(expiry, now + 1 + (keep == 0 and ttl or held > 0 and 0 or math.min(keep, ttl)))
end
if expiry ~= before then redis.call('ZADD', KEYS[2], int(expiry), ARGV[1]) end
if expiry > before then
  redis.call('PEXPIRE', KEYS[2], int(math.max(ttl, expiry - now, 1)))
  redis.call('SET', KEYS[4], '1', 'PX', int(math.max(expiry - now, 1)))
end
if held > 0 then
  -- Only ever shorter: unlocking one hold never lengthens the lease of another.
  local stays = math.max(keep, expiry - now)
  if alone and ttl > stays then redis.call('PEXPIRE', KEYS[1], int(stays)) end
  return {held, 1, -1}
end
if reads > 0 and expiry <= now and (expiry > 0 or redis.call('EXISTS', KEYS[4]) == 0) then
  redis.call('HDEL', KEYS[1], ARGV[1]) -- their lease is over
  redis.call('ZREM', KEYS[2], ARGV[1])
  remove(KEYS[4], ids)
  reads = 0
end
remove(KEYS[3])
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  remove(KEYS[2], ids)
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
  if reads > 0 and expiry > now then redis.call('PEXPIRE', KEYS[1], int(expiry - now)) end
end
local receivers = publish('1')
if receivers ~= 0 then publish('0') end
return {0, 1, receivers}
