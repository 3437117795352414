-- leave_write.lua: a writer has left the lock, which stands for a while yet all the same, as leave.lua of rlock has
-- it: neither readers nor writers come in before.
-- KEYS[1] to KEYS[3], ARGV[1] see owner.lua  KEYS[4] the ids; left out if the claim has made none
-- ARGV[2] for how many ms from now it stands  ARGV[3] 1: the owner is private; else what the names of its timeout
--   keys begin with
-- ARGV[4] channel  ARGV[5] publish  ARGV[6] what makes a session's channel of its id
-- ARGV[i] i > 6: of a named owner, the ids of this session's holds of the write side
-- Returns {holds, 1, -1}, or {0, 0, -1} if this session does not hold it (any more)
-- Publishes '1' and '0', although the lock is not free: who waits asks once, and learns when it will be. The first
--   of the line that hears it, and the first two such of the readers there, are called for that time, see line.lua and
--   gate.lua
local LINE = KEYS[3]
-- include owner, still_in, each, gate
bad = bad or refused(KEYS[4] and redis.pcall('SCARD', KEYS[4]))
if gone or not bad and writes <= 0 then return {0, 0, -1} end
if bad then return bad end
local ms = tonumber(ARGV[2])
if ARGV[3] ~= '1' then
  local ours = each('SISMEMBER', KEYS[4], 'w', 7, #ARGV)
  if ours == 0 then return {0, 0, -1} end -- what is counted belongs to a later life of the lock
  if reads > 0 then ms = math.max(ms, still_in(ARGV[3], reads)) end -- Redisson may share it
  if ours ~= writes then ms = math.max(ms, redis.call('PTTL', KEYS[1])) end
end
if reads > 0 and expiry then ms = math.max(ms, expiry - now) end -- its read holds need the lock too
redis.call('PEXPIRE', KEYS[1], int(ms))
if KEYS[4] then redis.call('PEXPIRE', KEYS[4], int(ms)) end
redis.call(ARGV[5], ARGV[4], '1')
redis.call(ARGV[5], ARGV[4], '0')
local heads = entries(0)
if not heads.err and is_entry(heads[1]) and call(ARGV[6], heads[1], int(ms + 1)) == 0 then
  call_others(1, '0', '(' .. int(NUMBER), 1, ARGV[6], ARGV[5], int(ms + 1))
end
local readers = heads[1] and redis.call('ZRANGEBYSCORE', LINE, int(READERS), '+inf', 'LIMIT', 0, 2) or {}
local vain = 0
for i = 1, #readers do
  if call(ARGV[6], readers[i], int(ms + 1)) == 0 then vain = vain + 1 end
end
if vain > 0 and #readers == 2 then call_others(vain, int(READERS), '+inf', 2, ARGV[6], ARGV[5], int(ms + 1)) end
return {writes, 1, -1}
