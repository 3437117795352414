-- extend.lua: gives a held lock a new end. Run twice it sets the same end, counted
-- from the later run.
--
-- KEYS[1]  the lock: hash, owner -> holds
-- KEYS[2]  optional: a key that lives as long as the lock
-- ARGV[1]  owner
-- ARGV[2]  time to live in ms, from now
-- ARGV[3]  the holds for which the end may also move closer: if the owner has more,
--          others hold under it too; 0: only further away
-- Returns  1, or 0 if that owner does not hold it (any more)
-- Publishes nothing.
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' or (tonumber(held or 0) or 0) <= 0 then
  return 0
end
if tonumber(held) <= tonumber(ARGV[3]) or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  if KEYS[2] then
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
  end
end
return 1
