-- take.lua: takes n from a counter that has n. A refused request leaves nothing but its entry in the line, and may
-- be resent. A caller that waits enters the line if the counter has less, or others wait; see serve.lua.
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4] see counter.lua; the outcome is n, or 'undone'  ARGV[5] n
-- KEYS[4] with ARGV[6]: the line  ARGV[6] what stands in front of the owner in its entry; '': it does not wait in the
--   line, and the rest is left out; b: it polls  ARGV[7] 1: its entry may be in the line
-- ARGV[8] 1: the session may listen to the channel  ARGV[9] counts
-- ARGV[10] what makes a session's channel of its id  ARGV[11] how many callers of it wait; 0: as before
-- ARGV[12] the owner, for b the session  ARGV[13] for b: in how many ms it comes again
-- ARGV[14] for b: for how many ms before that the counter is to be left to it  ARGV[15] channel  ARGV[16] publish
-- Returns {1, -1, 0, changed, free, -1}: granted; {0, -1, 0, 0, free, -1}: it has less, or was undone
--   {0, ms, Redis's time in ms, position, free, -1}: it stands in the line; ms is -1 if it is not the first, or NEVER
-- Publishes the messages of line.lua
local LINE = ARGV[6] ~= '' and KEYS[4]
-- include counter, serve
local n, free, entry = tonumber(ARGV[5]), tonumber(value or 0) or 0, LINE and ARGV[6] ~= 'b' and ARGV[6] .. ARGV[12]
local at = {channel = ARGV[15], publish = ARGV[16], counts = ARGV[9], prefix = ARGV[10]}
local heads = entry and entries(0)
if outcome then
  renew()
  if entry and heads[1] then
    leave(entry, heads[1] == entry)
    let_in(free, math.huge, at, heads[1] == entry and entry)
  end
  return {outcome == 'undone' and 0 or 1, -1, 0, 0, free, -1}
end
if heads and heads.err then return (refused(heads, ': the line')) end
local first = heads and heads[1] == entry
if entry and (free < n or heads[1]) then
  local us, now = time()
  local bad, _, granted, more, position
  bad, _, granted, more, position, first =
    wait_in_line(entry, heads, free, math.huge, at, us, now, ARGV[7] == '1', ARGV[8], ARGV[11])
  if bad then return bad end
  if not granted then return {0, more and 1 or first and NEVER or -1, now, position, free, -1} end
end
if free < n then
  if LINE and not entry and free <= 0 then book(ARGV[12], tonumber(ARGV[13]), tonumber(ARGV[14]), select(2, time())) end
  return {0, -1, 0, 0, free, -1}
end
local bad
free, bad = change(ARGV[5], 'DECRBY', ARGV[5])
if bad then return bad end
if entry and heads[1] or entry and redis.pcall('EXISTS', LINE) == 1 then
  leave(entry, true)
  let_in(free, math.huge, at, first and entry)
end
return {1, -1, 0, 1, free, -1}
