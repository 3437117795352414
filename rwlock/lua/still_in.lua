-- still_in returns for how many ms an owner reads by its timeout keys, whose names begin with base; 0: no more. They tell of
-- Redisson's holds, also where our sessions share the owner: its renewal does not know KEYS[2]. For keys beside KEYS see
-- readers.lua; an owner whose keys are out of reach is taken for alive. It looks at the keys from first on, or at all.
local function still_in(base, holds, first)
  local longest = 0
  for i = first or 1, math.min(holds, (first or 1) + 999) do
    local ttl = redis.pcall('PTTL', base .. i)
    if type(ttl) == 'table' or ttl == -1 then return redis.call('PTTL', KEYS[1]) end
    longest = math.max(longest, ttl)
  end
  return longest
end
