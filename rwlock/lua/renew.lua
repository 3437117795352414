-- renew.lua: keeps many holds, of either side, alive for one more lease; what is held
-- longer by a fixed lease stays so. Safe to run any number of times.
--
-- KEYS     for each hold, one after the other: the lock; for a reader then the zset of our
--          readers; then, unless they are left out, the set of ids and, for a reader, its
--          timeout keys. One that has gone comes back
-- ARGV[1]  lease in ms; 0 only asks
-- ARGV[i]  i > 1: a hold: r or w for its side, how many keys it has, a colon, and its
--          field in the hash: 'r4:me', 'w2:me:write'
-- Returns  for each hold 1, or 0 if it is not there (any more)
-- Publishes nothing.
local lease = tonumber(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function reader(first, count, owner)
  local fields = redis.pcall('HMGET', KEYS[first], 'mode', owner, owner .. ':write')
  if fields.err then
    return 0
  end
  if not fields[2] or not (fields[1] == 'read' or (fields[1] == 'write' and fields[3])) then
    redis.pcall('ZREM', KEYS[first + 1], owner) -- of an earlier life
    return 0
  end
  local expiry = redis.pcall('ZSCORE', KEYS[first + 1], owner)
  if type(expiry) == 'table' then
    return 1 -- nobody can get in while that key is of another type
  end
  if lease == 0 then
    -- Redisson's renewal sets the TTL of the lock down to its own lease, whatever others hold.
    if expiry and tonumber(expiry) - now > redis.call('PTTL', KEYS[first]) then
      redis.call('PEXPIRE', KEYS[first], string.format('%.0f', tonumber(expiry) - now))
      redis.call('PEXPIRE', KEYS[first + 1], string.format('%.0f', math.max(redis.call('PTTL', KEYS[first + 1]), tonumber(expiry) - now)))
    end
    return 1
  end
  expiry = math.max(tonumber(expiry or 0), now + 1 + lease) -- see acquire_read.lua
  local left = string.format('%.0f', expiry - now)
  local ttl = string.format('%.0f', math.max(redis.call('PTTL', KEYS[first]), expiry - now))
  redis.call('ZADD', KEYS[first + 1], string.format('%.0f', expiry), owner)
  redis.call('PEXPIRE', KEYS[first], ttl)
  redis.call('PEXPIRE', KEYS[first + 1], ttl)
  if count > 2 then
    redis.call('PEXPIRE', KEYS[first + 2], ttl)
  end
  for i = first + 3, first + count - 1 do
    redis.call('SET', KEYS[i], '1', 'PX', left)
  end
  return 1
end

local function writer(first, count, field)
  local fields = redis.pcall('HMGET', KEYS[first], 'mode', field)
  if fields.err or fields[1] ~= 'write' or not fields[2] then
    return 0
  end
  if lease > 0 then
    local ttl = string.format('%.0f', math.max(redis.call('PTTL', KEYS[first]), lease))
    redis.call('PEXPIRE', KEYS[first], ttl)
    if count > 1 then
      redis.call('PEXPIRE', KEYS[first + 1], ttl)
    end
  end
  return 1
end

local alive, first = {}, 1
for i = 2, #ARGV do
  local side, count, field = string.match(ARGV[i], '^(.)(%d+):(.*)$')
  count = tonumber(count)
  if side == 'r' then
    alive[i - 1] = reader(first, count, field)
  else
    alive[i - 1] = writer(first, count, field)
  end
  first = first + count
end
return alive
