-- renew_taken.lua: what renew.lua does for one request, by one key: while a slot of a Cluster moves, Redis refuses both
-- keys together if only one of them is there.
-- KEYS[1] the taken permits, see permits.lua  ARGV[1] lease in ms; 0 only asks  ARGV[2] n
-- ARGV[3] what keep.lua takes; ARGV[4..] the n ids of the permits
-- Returns as renew.lua
-- include expiries
local lease, taken, first, reply = tonumber(ARGV[1]), KEYS[1], 4, {}
local gone, unknown = missing(taken, first, #ARGV)
if lease > 0 and not gone then
  prolong(taken, taken, first, #ARGV, 'GT', now + 1 + lease, ARGV[3])
end
for i = 2, #ARGV do reply[i - 1] = unknown and -1 or gone and 0 or 1 end
return reply
