-- extend.lua: gives a held lock a new end. Run twice it sets the same end, counted from the
-- later run. The end of a named owner's lock moves closer only if all its holds are of this
-- session; that of a lock with renewed holds does not.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  the ids of its holds: set; left out where there are none
-- ARGV[1]  owner
-- ARGV[2]  time to live in ms, from now
-- ARGV[3]  1: the owner is private: all that is counted is this session's
-- ARGV[4]  1: the end only moves away
-- ARGV[i]  i > 4: of a named owner, the ids of this session's holds
-- Returns  1, or 0 if this session does not hold it (any more)
--          WRONGTYPE error: the ids are of another type, nothing was changed
-- Publishes nothing.
-- include refused, there
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
local known = KEYS[2] and redis.pcall('SCARD', KEYS[2])
local bad, gone = refused(held)
bad = bad or KEYS[2] and refused(known)
if gone or (not bad and (tonumber(held or 0) or 0) <= 0) then
  return 0
elseif bad then
  return bad
end
local away = ARGV[4] == '1'
if ARGV[3] ~= '1' then
  local ours = there(KEYS[2], '', 5, #ARGV)
  if ours == 0 then
    return 0 -- what is counted belongs to a later life of the lock
  end
  away = away or ours ~= tonumber(held)
end
if away and redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then
  return 1
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if KEYS[2] then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
return 1
