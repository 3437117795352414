-- renew.lua: keeps the permits of many requests for at least one more lease.
-- KEYS    for each request two, see permits.lua  ARGV[1] lease in ms; 0 only asks
-- ARGV[i] for each request n; what keep.lua takes; and the n ids of its permits
-- Returns for each of the ARGV[i] 1; 0: not all of its permits are there; -1: Redis does not say
-- include expiries
local lease, reply, i, key = tonumber(ARGV[1]), {}, 2, 1
while i <= #ARGV do
  local free, taken, first, last = KEYS[key], KEYS[key + 1], i + 2, i + 1 + ARGV[i]
  local value = redis.pcall('GET', free)
  local bad, other = refused(value)
  local gone, unknown = bad or not value, bad and not other
  if not gone then gone, unknown = missing(taken, first, last) end
  if lease > 0 and not gone then
    prolong(free, taken, first, last, 'GT', now + 1 + lease, ARGV[i + 1])
  end
  for k = i, last do reply[k - 1] = unknown and -1 or gone and 0 or 1 end
  i, key = last + 1, key + 2
end
return reply
