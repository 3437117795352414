-- waiters.lua: counts the callers that wait, of the sessions that stand in one part of the line and are heard of: a script
-- for all of a long line would hold up the lock's other callers. Read-only.
-- KEYS[1] the line, see line.lua  ARGV[1] with which of its members the part begins, from 0 on
-- Returns {callers, next}: as of the last look of each session; the next part begins with next, 0: there is none
-- include refused, clock
local MEMBERS = 1000
local all = redis.pcall('ZRANGE', KEYS[1], ARGV[1], ARGV[1] + MEMBERS - 1)
local bad = refused(all, ': the line')
if bad then return bad end
local n = 0
for _, entry in ipairs(all) do
  if string.find(entry, '^[gzandefhiPQCVUWNRS]%w') then
    local session = string.sub(entry, 21, 20 + tonumber(string.sub(entry, 16, 20), 10))
    local scores = redis.call('ZMSCORE', KEYS[1], 's' .. session, 'w' .. (string.find(entry, '^[defhi]') and entry or session))
    if 5e15 - (scores[1] or 5e15) >= now then n = n + math.max(1, (scores[2] or 8.6e15) - 8.6e15) end
  end
end
return {n, #all == MEMBERS and ARGV[1] + MEMBERS or 0}
