-- renew_fenced.lua: renew.lua for locks whose fencing token has an end, later than that of the lock.
-- KEYS[i] a lock, or a key that goes along with the lock before it  ARGV[1] lease in ms; 0 only asks
-- ARGV[1+i] of a lock '=' and its owner; of its token for how many ms that outlives it; else ''
-- Returns as renew.lua
-- include refused, outlive
local lease, alive, lock = tonumber(ARGV[1]), {}, 0
for i, key in ipairs(KEYS) do
  local what = ARGV[1 + i]
  if string.sub(what, 1, 1) == '=' then
    local there = redis.pcall('HEXISTS', key, string.sub(what, 2))
    local bad, other = refused(there)
    lock, alive[i] = i, bad and not other and -1 or there == 1 and 1 or 0
  else
    alive[i] = alive[lock] == 1 and 1 or 0
  end
  if alive[i] == 1 and i > lock and what ~= '' then
    outlive(key, redis.call('PTTL', KEYS[lock]), what)
  elseif alive[i] == 1 and lease > 0 and redis.call('PTTL', key) < lease then
    redis.call('PEXPIRE', key, lease)
  end
end
return alive
