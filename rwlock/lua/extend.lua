-- extend.lua: gives an owner's holds of one side a new end. Run twice it sets the same end,
-- counted from the later run. The end of a named owner's holds moves closer only if all of
-- them are of this session; that of a section with renewed holds does not.
--
-- KEYS[1] to KEYS[3], ARGV[1]: see owner.lua
-- KEYS[i]  i > 3: of the read side, the reader's timeout keys
-- ARGV[2]  time to live in ms, from now
-- ARGV[3]  r or w, for the side
-- ARGV[4]  1: the owner is private: all that is counted is this session's
-- ARGV[5]  1: the end only moves away
-- ARGV[i]  i > 5: of a named owner, the ids of this session's holds of the side
-- Returns  1, or 0 if this session does not hold it (any more)
--          WRONGTYPE error: a key that goes along is of another type
-- Publishes nothing.
-- include owner, there
local ids = redis.pcall('SCARD', KEYS[3])
bad = bad or refused(ids)
local side = ARGV[3]
local held = side == 'r' and reads or writes
if gone or (not bad and held <= 0) then
  return 0
elseif bad then
  return bad
end
local mine = ARGV[4] == '1'
if not mine then
  local n = there(KEYS[3], side, 6, #ARGV)
  if n == 0 then
    return 0 -- what is counted belongs to a later life of the lock
  end
  mine = n == held
end
mine = mine and ARGV[5] ~= '1'

local ttl, stays = redis.call('PTTL', KEYS[1]), now + 1 + ARGV[2]
if side == 'w' then
  stays = tonumber(ARGV[2])
  if reads > 0 then
    stays = math.max(stays, (expiry or 0) - now) -- its read holds need the lock too
  end
  if mine or ttl < stays then
    redis.call('PEXPIRE', KEYS[1], int(stays))
    redis.call('PEXPIRE', KEYS[3], int(stays))
  end
  return 1
end
if not mine then
  stays = math.max(stays, expiry or 0)
end
redis.call('ZADD', KEYS[2], int(stays), ARGV[1])
for i = 4, #KEYS do
  redis.call('SET', KEYS[i], '1', 'PX', int(stays - now))
end
-- The lock itself moves closer only if all that hold it are ours.
if mode == 'read' and redis.call('ZCARD', KEYS[2]) == redis.call('HLEN', KEYS[1]) - 1 then
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if redis.call('HEXISTS', KEYS[1], last[1]) == 1 then
    ttl = last[2] - now
  end
end
for i = 1, 3 do
  redis.call('PEXPIRE', KEYS[i], int(math.max(ttl, stays - now)))
end
return 1
