-- probe.lua: finds out when a session begins whether locks can work here. Leaves nothing behind.
-- KEYS[1] a key of the session's own, named as a lock may be  ARGV[1] its channel  ARGV[2] publish
-- ARGV[3] the channel of a session that there is not
-- Returns 1, 2 if this user may not publish to ARGV[3], or Redis's error: OLD ... before 6.2, or
--   ... (<publish>) if it refuses to publish
-- Publishes "0" to ARGV[1] and ARGV[3], where nobody listens.
redis.call('DEL', KEYS[1]) -- these two are refused, if they are, while there is nothing that would stay
redis.call('PEXPIRE', KEYS[1], 1000)
redis.pcall('ZADD', KEYS[1], 1, 'probe')
local grown = redis.pcall('ZADD', KEYS[1], 'GT', 2, 'probe') -- GT came with 6.2
redis.call('DEL', KEYS[1])
if type(grown) == 'table' and grown.err and string.find(grown.err, 'syntax error', 1, true) then
  return redis.error_reply('OLD ' .. grown.err)
end
redis.call('HINCRBY', KEYS[1], 'probe', 1)
redis.call('DEL', KEYS[1])
local told = redis.pcall(ARGV[2], ARGV[1], '0')
if type(told) ~= 'table' or not told.err then
  return type(redis.pcall('PUBLISH', ARGV[3], '0')) == 'table' and 2 or 1
end
return redis.error_reply(told.err .. ' (' .. ARGV[2] .. ')')
