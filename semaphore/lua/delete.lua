-- delete.lua: deletes a semaphore and its permits, unless a later SetLimit or Delete came before.
-- KEYS[1], KEYS[2], KEYS[3], KEYS[4] see set_limit.lua  ARGV[3] channel  ARGV[4] publish
-- KEYS[5] with ARGV[5]: the line  ARGV[5] what makes a session's channel of its id; '': there is no line
-- ARGV[1] the number of this Delete  ARGV[2] for how many ms from this run on that is remembered
-- Returns 1, or 0 if an earlier run has done it, or it came late
-- Publishes how many permits there were, if some, so that waiters make the semaphore anew;
--   and calls the first of the line, which does; or another entry, if nobody hears that.
local LINE = ARGV[5] ~= '' and KEYS[5]
-- include no_counter, last, integer, serve
local value, taken = redis.pcall('GET', KEYS[1]), redis.pcall('ZCARD', KEYS[2])
local bad = refused(value) or refused(taken)
if bad then return bad end
if last and tonumber(last) >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[2])
local free = taken + (value and integer(value) and tonumber(value) or 0)
if free > 0 then redis.call(ARGV[4], ARGV[3], int(free)) end
local heads = LINE and entries(0)
if heads and is_entry(heads[1]) and call(ARGV[5], heads[1], 0) == 0 then call_newest(ARGV[5], 0) end
return 1
