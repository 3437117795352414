-- untake.lua: gives back what take.lua took for a request; should that run later, it takes nothing.
-- KEYS[1] the counter: integer; not made anew if it was deleted  KEYS[2] the requests, see counter.lua
-- KEYS[3] with ARGV[8]: the line  ARGV[1], ARGV[2], ARGV[3], ARGV[4] see there  ARGV[5] channel  ARGV[6] publish
-- ARGV[7] counts  ARGV[8] what makes a session's channel of its id; '': there is no line
-- ARGV[9] what stands in front of the owner in an entry, which leaves the line; '': none  ARGV[10] the owner
-- Returns {0, changed, receivers}; changed is 0 if nothing was given back
-- Publishes the new value, or 0 if it is below 0, if something was given back; and the messages of line.lua.
local LINE = ARGV[8] ~= '' and KEYS[3]
-- include refused, integer, serve
local value, last = redis.pcall('GET', KEYS[1]), redis.pcall('HGET', KEYS[2], ARGV[1])
local bad, gone = refused(last)
if gone then return {0, 0, -1} end -- no request of ours
if not bad then bad, gone = refused(value) end
if bad and not gone then return bad end
local at = {channel = ARGV[5], publish = ARGV[6], counts = ARGV[7], prefix = ARGV[8]}
local heads = LINE and ARGV[9] ~= '' and entries(0)
if heads and heads[1] then
  local entry = ARGV[9] .. ARGV[10]
  leave(entry, heads[1] == entry)
  let_in(tonumber(value or 0) or 0, math.huge, at, heads[1] == entry and entry)
end
local number, outcome = string.match(last or '', '^(%d+):(.*)$')
if number and tonumber(number) > tonumber(ARGV[2]) then
  return {0, 0, -1} -- a later request has the slot: this one was ended before
end
redis.pcall('PEXPIRE', KEYS[2], ARGV[3]) -- first: it is never refused for want of memory
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ':undone')
local ends = redis.pcall('PEXPIRE', KEYS[2], ARGV[3]) -- an error if this user may not: a later run tries again
if number ~= ARGV[2] or outcome == 'undone' or type(value) ~= 'string' or not integer(value) then
  return refused(ends) or {0, 0, -1} -- nothing was taken, or the counter that it was taken from is gone
end
value = redis.pcall('DECRBY', KEYS[1], '-' .. outcome) -- a user who could take may do so
if type(value) == 'table' then
  redis.call('HSET', KEYS[2], ARGV[1], last) -- so that a second run does it
  return value
end
if ARGV[4] ~= '0' then redis.pcall('PEXPIRE', KEYS[1], ARGV[4]) end
let_in(value, math.huge, at)
local receivers = redis.call(ARGV[6], ARGV[5], string.format('%.0f', math.max(value, 0)))
return refused(ends) or {0, 1, ARGV[7] == '1' and receivers or -1}
