-- extend.lua: gives the n permits of an owner a new expiry. Run twice it sets the same
-- one, counted from the later run.
--
-- KEYS[1], KEYS[2]  see permits.lua
-- ARGV[1]  owner; its permits are '<owner>:1' to '<owner>:<n>'
-- ARGV[2]  n
-- ARGV[3]  lease in ms, from now
-- ARGV[4]  1: the expiry may also move closer; 0: only further away
-- Returns  1, or 0 if one of the permits has expired or is gone, or the semaphore is
-- Publishes nothing.
-- include clock, int
if type(redis.pcall('GET', KEYS[1])) ~= 'string' then
  return 0
end
local owner, n, new, expiries = ARGV[1], tonumber(ARGV[2]), now + 1 + ARGV[3], {}
for i = 1, n do
  -- An error (another type stands there now) is a table, and no number.
  expiries[i] = tonumber(redis.pcall('ZSCORE', KEYS[2], owner .. ':' .. i) or 0) or 0
  if expiries[i] <= now then
    return 0
  end
end
for i = 1, n do
  if ARGV[4] == '1' or expiries[i] < new then
    redis.call('ZADD', KEYS[2], int(new), owner .. ':' .. i)
  end
end
return 1
