-- extend.lua: gives an owner's holds of one side a new end, as extend.lua of rlock does for a lock.
-- KEYS[1], KEYS[2], ARGV[1] see owner.lua  KEYS[3] the ids  KEYS[4] and more: a reader's timeout keys
-- ARGV[2] time to live in ms from now  ARGV[3] r or w, the side  ARGV[4] 1: the owner is private; else what
--   the names of its timeout keys begin with
-- ARGV[5] 1: the end only moves away  ARGV[6] id of this extension, or ''
-- ARGV[7] how many ids of extensions follow that are void from now on
-- ARGV[i] i > 7: those; then, of a named owner, the ids of this session's holds of the side
-- Returns 1, or 0 if this session does not hold it (any more)
-- include owner, each, all_ours
local void = redis.pcall('SISMEMBER', KEYS[3], 'x' .. ARGV[6])
bad = bad or refused(void)
local side, held = ARGV[3], ARGV[3] == 'r' and reads or writes
if gone or (not bad and held <= 0) then return 0 end
if bad or void == 1 then return bad or 1 end
local mine, first = ARGV[4] == '1', 8 + ARGV[7]
if not mine then
  local n = each('SISMEMBER', KEYS[3], side, first, #ARGV)
  if n == 0 then return 0 end -- what is counted belongs to a later life of the lock
  mine = n == held
end
local all = mine
mine = mine and ARGV[5] ~= '1'
local lease, ttl = tonumber(ARGV[2]), redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], int(math.max(ttl, lease))) -- first: it needs no memory, as the rest does
each('SADD', KEYS[3], 'x', 8, first - 1)
if side == 'w' then
  local stays = math.max(lease, reads > 0 and (expiry or 0) - now or 0) -- its read holds need it too, and Redisson's
  if mine and reads > 0 and ARGV[4] ~= '1' then stays = math.max(stays, still_in(ARGV[4], reads)) end
  ttl = mine and stays or math.max(ttl, stays)
  redis.call('PEXPIRE', KEYS[1], int(ttl))
  redis.call('PEXPIRE', KEYS[3], int(ttl))
  return 1
end
local stays = now + 1 + lease
if not mine then stays = math.max(stays, expiry or 0) end
redis.call('ZADD', KEYS[2], int(stays), ARGV[1])
for i = 4, #KEYS do
  redis.call('SET', KEYS[i], '1', 'PX', int(all and stays - now or math.max(stays - now, redis.call('PTTL', KEYS[i]))))
end
-- The lock itself moves closer only if all that hold it are ours.
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] - now
if mode == 'read' and all and ttl > last and all_ours(redis.call('HLEN', KEYS[1]) - 1, last,
    string.sub(KEYS[4], 1, #KEYS[4] - #(ARGV[1] .. ':rwlock_timeout:1'))) then
  ttl = last
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], int(math.max(ttl, stays - now))) end
return 1
