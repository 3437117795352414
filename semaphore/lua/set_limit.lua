-- set_limit.lua: sets the limit, unless a later SetLimit or Delete came. Taken permits stay taken.
-- KEYS[1], KEYS[2] see permits.lua; made if they are not there  KEYS[3] see no_counter.lua
-- KEYS[4] the number of this session's last SetLimit or Delete: integer; expires  KEYS[5] with ARGV[8]: the line
-- ARGV[1] the limit  ARGV[2] channel  ARGV[3] publish  ARGV[4] the number of this SetLimit
-- ARGV[5] for how many ms from this run on that is remembered  ARGV[6] see keep.lua
-- ARGV[7] counts  ARGV[8] what makes a session's channel of its id; '': there is no line
-- Returns how many permits are free, below 0 if more are taken than the limit allows
-- Publishes how many are free, or 0 if below that, if the limit was changed, or permits had expired;
--   and the messages of line.lua: also to those among the first hundred who want more than the limit
local LINE = ARGV[8] ~= '' and KEYS[5]
-- include no_counter, last, clock, keep, permits, serve
local free = ARGV[1] - taken
if last and tonumber(last) >= tonumber(ARGV[4]) then
  if not value then return free end -- it was deleted since
  free = value
else
  redis.call('SET', KEYS[4], ARGV[4], 'PX', ARGV[5])
end
if free ~= value then redis.call('SET', KEYS[1], int(free), 'KEEPTTL') end
keep(tonumber(ARGV[6]))
local left = let_in(free, tonumber(ARGV[1]), {channel = ARGV[2], publish = ARGV[3], counts = ARGV[7], prefix = ARGV[8]})
for _, entry in ipairs(LINE and redis.pcall('ZRANGEBYSCORE', LINE, '0', '(' .. int(NUMBER), 'LIMIT', 0, 100) or {}) do
  if is_entry(entry) and size(entry) > tonumber(ARGV[1]) then call(ARGV[8], entry, 0) end
end
if free ~= value or back > 0 then redis.call(ARGV[3], ARGV[2], int(math.max(left, 0))) end
return left
