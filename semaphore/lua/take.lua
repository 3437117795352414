-- take.lua: takes n from a counter that has n. A refused request leaves nothing, and may be resent.
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4] see counter.lua; the outcome is n, or 'undone'  ARGV[5] n
-- Returns {1, -1, 0, changed, free, -1}: granted; {0, -1, 0, 0, free, -1}: it has less, or was undone
-- include counter
local free, bad = tonumber(value or 0) or 0, nil
if outcome then
  renew()
  return {outcome == 'undone' and 0 or 1, -1, 0, 0, free, -1}
end
if free < tonumber(ARGV[5]) then return {0, -1, 0, 0, free, -1} end
free, bad = change(ARGV[5], 'DECRBY', ARGV[5])
return bad or {1, -1, 0, 1, free, -1}
