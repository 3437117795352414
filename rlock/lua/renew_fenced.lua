-- renew_fenced.lua: what renew.lua does, for locks whose fencing token has an end: the token's key
-- lives longer than the lock. Publishes nothing.
--
-- KEYS[i]    a lock (hash, owner -> holds), or a key that goes along with the lock before it
-- ARGV[1]    lease in ms; 0 only asks
-- ARGV[1+i]  '=' and the owner that is believed to hold KEYS[i]; '' for a key that lives as long
--            as the lock; for the fencing token for how many ms it outlives the lock
-- Returns    as renew.lua
-- include refused, outlive
local lease = tonumber(ARGV[1])
local alive, lock = {}, 0
for i, key in ipairs(KEYS) do
  local what = ARGV[1 + i]
  if string.sub(what, 1, 1) == '=' then
    lock = i
    local there = redis.pcall('HEXISTS', key, string.sub(what, 2))
    local bad, other = refused(there)
    alive[i] = bad and not other and -1 or there == 1 and 1 or 0
  else
    alive[i] = alive[lock] == 1 and 1 or 0
  end
  if alive[i] == 1 then
    if i > lock and what ~= '' then
      outlive(key, redis.call('PTTL', KEYS[lock]), what)
    elseif lease > 0 and redis.call('PTTL', key) < lease then
      redis.call('PEXPIRE', key, lease)
    end
  end
end
return alive
