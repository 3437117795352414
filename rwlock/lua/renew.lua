-- renew.lua: keeps many holds, of either side, alive for one more lease, or for longer if they are.
-- KEYS    for each hold: the lock; for a reader the zset of our readers; then, unless they are left
--   out, the set of ids and, for a reader, its timeout keys: one that has gone comes back
-- ARGV[1] lease in ms; 0 only asks
-- ARGV[i] i > 1: a hold, by its side, its number of keys and its field: 'r4:me', 'w2:me:write'; s: a reader's, whose owner
--   is named
-- Returns for each hold 1; 0: it is not there (any more); -1: Redis does not say
-- include clock, int, refused
local function gone(reply) -- 0 if it is of another type, -1 if Redis does not say
  local bad, other = refused(reply)
  return bad and (other and 0 or -1)
end
local lease = tonumber(ARGV[1])
local function reader(first, count, owner, named)
  local lock, readers = KEYS[first], KEYS[first + 1]
  local fields = redis.pcall('HMGET', lock, 'mode', owner, owner .. ':write')
  local expiry = redis.pcall('ZSCORE', readers, owner)
  local bad = gone(fields) or gone(expiry) -- nothing could be prolonged beside readers of another type
  if bad then return bad end
  if not fields[2] or not (fields[1] == 'read' or (fields[1] == 'write' and fields[3])) then
    redis.pcall('ZREM', readers, owner) -- of an earlier life
    return 0
  end
  expiry = math.max(tonumber(expiry or 0), lease > 0 and now + 1 + lease or 0)
  local left, ttl = expiry - now, redis.call('PTTL', lock)
  -- (Redisson's renewal sets the TTL of the lock down to its own lease, whatever others hold.)
  if lease == 0 and left <= ttl then return 1 end
  ttl = int(math.max(ttl, left))
  redis.call('PEXPIRE', lock, ttl) -- first, since a server out of memory refuses ZADD
  if lease > 0 then redis.call('ZADD', readers, int(expiry), owner) end
  redis.call('PEXPIRE', readers, int(math.max(redis.call('PTTL', readers), ttl))) -- others may be in for longer
  if lease == 0 then return 1 end
  if count > 2 then redis.call('PEXPIRE', KEYS[first + 2], ttl) end
  -- (A hold may have ended since this was sent, and its key with it.)
  local holds = tonumber(fields[2]) or 0
  for i = first + 3, math.min(first + count - 1, first + 2 + holds) do
    -- Others, who may be Redisson's, may have holds of this owner that are good for longer; or all of them, if this comes
    -- behind a release.
    redis.call('SET', KEYS[i], '1', 'PX', int(named and math.max(left, redis.call('PTTL', KEYS[i])) or left))
  end
  return 1
end
local function writer(first, count, field)
  local fields = redis.pcall('HMGET', KEYS[first], 'mode', field)
  local bad = gone(fields)
  if bad then return bad end
  if fields[1] ~= 'write' or not fields[2] then return 0 end
  if lease > 0 then
    local ttl = int(math.max(redis.call('PTTL', KEYS[first]), lease))
    for i = first, first + count - 1 do redis.call('PEXPIRE', KEYS[i], ttl) end
  end
  return 1
end
local alive, first = {}, 1
for i = 2, #ARGV do
  local side, count, field = string.match(ARGV[i], '^(.)(%d+):(.*)$')
  alive[i - 1] = (side == 'w' and writer or reader)(first, tonumber(count), field, side == 's')
  first = first + count
end
return alive
