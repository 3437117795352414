-- renew.lua: keeps many locks alive for one more lease; what is held longer by a fixed lease stays so.
-- KEYS[i]   a lock (hash, owner -> holds), or a key that lives as long as the one before it
-- ARGV[1]   lease in ms; 0 only asks
-- ARGV[1+i] the owner that is believed to hold KEYS[i]; '': it goes along with the key before it
-- Returns for each key 1; 0: that owner does not hold it (any more); -1: Redis does not say
-- include refused
local lease, alive = tonumber(ARGV[1]), {}
for i, key in ipairs(KEYS) do
  local owner = ARGV[1 + i]
  local there = owner ~= '' and redis.pcall('HEXISTS', key, owner)
  if there == 1 or owner == '' and alive[i - 1] == 1 then
    if lease > 0 and redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end
    alive[i] = 1
  else
    local bad, other = refused(there)
    alive[i] = bad and not other and -1 or 0
  end
end
return alive
