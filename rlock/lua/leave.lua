-- leave.lua: an owner has left the lock, which stands for a while yet all the same, as if it were still inside: nobody
-- comes in before. The end of the lock counts from the later run of two. It moves closer only if all the holds of a
-- named owner are of this session; those stay counted.
-- KEYS[1] the lock  KEYS[2] with ARGV[8]: the line, see line.lua
-- KEYS[i] next, with ARGV[4]: the ids, see acquire.lua  KEYS[i] the last one, with ARGV[5]: the fencing token
-- ARGV[1] owner  ARGV[2] for how many ms from now it stands  ARGV[3] 1: the owner is private
-- ARGV[4] 1: the claim may have made the ids
-- ARGV[5] for how many ms the fencing token outlives the lock; 0: it has no end, or there is none
-- ARGV[6] channel  ARGV[7] publish  ARGV[8] what makes a session's channel of its id; '': there is no line
-- ARGV[i] i > 8: of a named owner, the ids of this session's holds
-- Returns {holds, 1, -1}, or {0, 0, -1} if this session does not hold it (any more)
-- Publishes '0', although the lock is not free: who waits asks once, and learns when it will be. The first of the
--   line that hears it is called for that time, see line.lua
local LINE = ARGV[8] ~= '' and KEYS[2]
-- include refused, each, outlive, newest
local ids = ARGV[4] == '1' and KEYS[LINE and 3 or 2]
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
local bad, gone = refused(held)
bad = bad or refused(ids and redis.pcall('SCARD', ids))
if gone or not bad and (tonumber(held or 0) or 0) <= 0 then return {0, 0, -1} end
if bad then return bad end
local ms = tonumber(ARGV[2])
if ARGV[3] ~= '1' then
  local ours = each('SISMEMBER', ids, '', 9, #ARGV)
  if ours == 0 then return {0, 0, -1} end -- what is counted belongs to a later life of the lock
  if ours ~= tonumber(held) then ms = math.max(ms, redis.call('PTTL', KEYS[1])) end
end
redis.call('PEXPIRE', KEYS[1], int(ms))
if ids then redis.call('PEXPIRE', ids, int(ms)) end
if ARGV[5] ~= '0' then outlive(KEYS[#KEYS], ms, ARGV[5]) end
redis.call(ARGV[7], ARGV[6], '0')
if LINE then
  local heads = entries(0)
  if not heads.err and is_entry(heads[1]) and call(ARGV[8], heads[1], int(ms + 1)) == 0 then
    call_others(1, '0', '(' .. int(NUMBER), 1, ARGV[8], ARGV[7], int(ms + 1))
  end
end
return {tonumber(held), 1, -1}
