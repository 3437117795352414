-- release_read.lua: ends holds of the read side, and takes back acquisitions of it whose outcome is
-- unknown. It costs the same however many readers of ours there are, but when the one that was to stay
-- longest leaves: see all_ours. The last of ours to leave looks at Redisson's, as those do each time.
-- KEYS[1] to KEYS[5], ARGV[1] and more, Returns: see ending.lua  KEYS[6] and more: timeout keys
-- Publishes '0' when the lock became free and was given to no writer, or a waiting writer must see whether
--   Redisson's readers live; and the messages of line.lua
local call, lock = redis.call, KEYS[1]
if (ARGV[6] or '2') == '2' and not KEYS[6] and redis.pcall('HLEN', lock) == 2
    and call('HGET', lock, ARGV[1]) == '1' and call('EXISTS', KEYS[3]) == 0 then
  -- The mode and one hold are all there is, and no writer waits.
  call('DEL', unpack(KEYS))
  local receivers = call(ARGV[3], ARGV[2], '0')
  return ARGV[4] == '1' and receivers or -1
end
local LINE, IDS = KEYS[3], 11
-- include ending, readers, all_ours
if waits and #(ARGV[6] or '') > 1 then leave_gate(string.sub(ARGV[6], 2) .. ARGV[1], at.prefix, now) end
local ended = take_out('r', reads, writes, kept)
if reads <= 0 then -- The hash was deleted under it; what went along with it goes too.
  redis.call('ZREM', KEYS[2], ARGV[1])
  remove(KEYS[4], unpack(KEYS, writes > 0 and 6 or 5))
  if go_on(false) then return {0, 0, -1, -1, now} end
  return {0, 0, -1}
end
if ended == 0 then return {reads, 0, -1} end
local held, base = math.max(reads - ended, 0), string.sub(KEYS[4], 1, -2)
local prefix = string.sub(base, 1, #base - #(ARGV[1] .. ':rwlock_timeout:'))
-- theirs returns for how many ms the holds that stay are good for if none of them is of a session of ours, as those of an
-- owner that Redisson shares: it renews their timeout keys alone.
local function theirs()
  local all = redis.pcall('SMEMBERS', ids)
  for _, id in ipairs(all) do
    if string.sub(id, 1, 1) == 'r' then return nil end
  end
  return not all.err and still_in(base, reads)
end
local stays = held > 0 and not private and theirs()
local alone = keep > 0 and (private or each('SISMEMBER', ids, 'r', kept, others - 1) == held)
-- What another's hold lives by may be a key behind those that count from now on. The first one speaks for it then.
local beyond = held > 0 and not private and not alone and still_in(base, reads, held + 1) or 0
local cut = alone and held > 0 and expiry and now + 1 + keep < expiry
if held == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  if writes <= 0 then remove(ids) end
else
  redis.call('HINCRBY', KEYS[1], ARGV[1], -ended)
end
if cut then -- only ever shorter: unlocking one hold never lengthens the lease of another
  expiry = now + 1 + keep
  redis.call('ZADD', KEYS[2], int(expiry), ARGV[1])
end
-- The owner may have more timeout keys than the session knows of. (One out of reach ends anyway.)
for i = 1, math.max(#KEYS - 4, math.min(reads, 1000)) do
  local key = i == 1 and KEYS[4] or KEYS[4 + i] or base .. i
  if i > held then
    redis.pcall('DEL', key)
  elseif cut and redis.call('PTTL', key) > keep then
    redis.call('PEXPIRE', key, keep)
  end
end
if stays then
  redis.call('ZREM', KEYS[2], ARGV[1])
  expiry = nil
  if stays > 0 then redis.call('SET', KEYS[4], '1', 'PX', stays) end
  if redis.call('PTTL', KEYS[1]) < stays then redis.call('PEXPIRE', KEYS[1], stays) end
elseif held > 0 and math.max(beyond, expiry and expiry - now or 0) > 0 then
  -- Those that stay may be of shorter leases; one that lives as long as the reader speaks for all.
  local good = math.max(beyond, expiry and expiry - now or 0)
  redis.call('SET', KEYS[4], '1', 'PX', int(private and good or math.max(good, redis.call('PTTL', KEYS[4]))))
end
if mode == 'write' then
  -- The TTL is the writer's: it shrinks to what that deserves if all that is left is this session's.
  if alone and (private or each('SISMEMBER', ids, 'w', others, #ARGV) == writes)
      and redis.call('PTTL', KEYS[1]) > keep then
    redis.call('PEXPIRE', KEYS[1], keep)
  end
  return {held, 1, -1}
end
-- Some of those whose lease is over go too; all if none of ours lives, or waiters would not be told.
local last = redis.pcall('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES') -- see remove
if last[1] and (held == 0 or (expiry and expiry > now)) then
  local most = tonumber(last[2]) > now and 8 or 500
  while bury(now, most, prefix) == 500 do end
end
local here, ours = redis.call('HLEN', KEYS[1]) - 1, tonumber(redis.pcall('ZCARD', KEYS[2])) or 0
local left = 0 -- ms until the last reader's lease is over; 0: not known
if ours == here and here > 0 then
  left = last[2] and last[2] - now or 0 -- this user may not ask
elseif ours == 0 and here > 0 and held == 0 and not waits then
  -- (The key of the line is missing, see readers.lua.)
  left = alive(prefix)
  here = left and here or 0
elseif ours == 0 and here > 0 and held == 0 then
  call_writer(at, now, 0)
  publish('0')
end
if here == 0 then
  local next, more, given
  local ms = waits and expects(now)
  if ms then -- the writer comes when they should have come
    next, more = call_writer(at, now, ms + 1)
  elseif waits then
    next, more, given = let_writer_in(heads, booking, at, now, 0)
  end
  if not given then redis.call('DEL', KEYS[1]) end
  remove(KEYS[2])
  if waits and not given then fade(redis.call('ZSCORE', LINE, 'm'), now) end
  local receivers = given and -1 or publish('0')
  if next or more then return {0, 1, receivers, more and -1 or 0, now} end
  return {0, 1, receivers}
end
-- The lock need not outlive the last of them.
if left > 0 and redis.call('PTTL', KEYS[1]) > left and (ours == 0 or all_ours(here, left, prefix)) then
  redis.call('PEXPIRE', KEYS[1], int(left))
end
return {held, 1, -1}
