-- waiters.lua: how many wait. Read-only.
-- KEYS[1] what is known of the queue: hash, see grant.lua
-- Returns the number of waiters of sessions that keep their entries
-- include refused, clock
local all = redis.pcall('HGETALL', KEYS[1])
local bad = refused(all, ': what is known of the queue')
if bad then return bad end
local keeps, n = {}, 0
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 1) == 's' then
    keeps[string.sub(all[i], 2)] = tonumber(string.sub(all[i + 1], 15))
  end
end
for i = 1, #all, 2 do
  local length = tonumber(string.sub(all[i], 1, 5)) -- of an entry; others are no numbers
  if length and (keeps[string.sub(all[i], 6, 5 + length)] or 0) > now then
    n = n + (tonumber(string.sub(all[i + 1], 4, 13)) or 0)
  end
end
return n
