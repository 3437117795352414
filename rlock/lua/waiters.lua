-- waiters.lua: how many callers wait, of the sessions that stand in the line and are heard of. Read-only.
-- KEYS[1] the line, see line.lua
-- Returns the number, as of the last look of each session
-- include refused, clock
local all = redis.pcall('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local bad = refused(all, ': the line')
if bad then return bad end
local score, n = {}, 0
for i = 1, #all, 2 do score[all[i]] = tonumber(all[i + 1]) end
for i = 1, #all, 2 do
  local entry = all[i]
  if string.find(entry, '^[gzandefhiPQCVUWNRS]%w') then
    local session = string.sub(entry, 21, 20 + tonumber(string.sub(entry, 16, 20), 10))
    local alive = 5e15 - (score['s' .. session] or 5e15)
    local counts = string.find(entry, '^[RS]') and '' or 'w' .. (string.find(entry, '^[defhi]') and entry or session)
    if alive >= now then n = n + math.max(1, (score[counts] or 8.6e15) - 8.6e15) end
  end
end
return n
