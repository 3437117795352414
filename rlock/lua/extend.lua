-- extend.lua: gives a held lock a new end, counted from the later run of two. A named owner's moves
-- closer only if all its holds are of this session. One that a later one voided changes nothing.
-- KEYS[1] the lock, KEYS[2] the ids, see acquire.lua; left out without an id where there are none
-- KEYS[i] the last one, with ARGV[7]: the fencing token
-- ARGV[1] owner  ARGV[2] time to live in ms, from now  ARGV[3] 1: the owner is private
-- ARGV[4] 1: the end only moves away (some holds are renewed)  ARGV[5] id of this extension, or ''
-- ARGV[6] how many ids of extensions follow that are void from now on
-- ARGV[7] for how many ms the fencing token outlives the lock; 0: it has no end, or there is none
-- ARGV[i] i > 7: those of ARGV[6]; then, of a named owner, the ids of this session's holds
-- Returns 1, or 0 if this session does not hold it (any more)
-- include refused, each, outlive
local ids = (ARGV[7] == '0' or #KEYS == 3) and KEYS[2]
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
local void = ids and redis.pcall('SISMEMBER', ids, 'x' .. ARGV[5])
local bad, gone = refused(held)
bad = bad or refused(void)
if gone or (not bad and (tonumber(held or 0) or 0) <= 0) then return 0 end
if bad or void == 1 then return bad or 1 end
local lease, away, first = tonumber(ARGV[2]), ARGV[4] == '1', 8 + ARGV[6]
if ARGV[3] ~= '1' then
  local ours = each('SISMEMBER', ids, '', first, #ARGV)
  if ours == 0 then return 0 end -- what is counted belongs to a later life of the lock
  away = away or ours ~= tonumber(held)
end
local ttl = redis.call('PTTL', KEYS[1])
if not away or ttl < lease then ttl = lease end
redis.call('PEXPIRE', KEYS[1], ttl) -- first, since a server out of memory refuses SADD
each('SADD', ids, 'x', 8, first - 1)
if ids then redis.call('PEXPIRE', ids, ttl) end
if ARGV[7] ~= '0' then outlive(KEYS[#KEYS], ttl, ARGV[7]) end
return 1
