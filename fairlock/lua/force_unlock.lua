-- force_unlock.lua: ends any owner's hold, tells the sessions of those owners, and lets the next run
-- in. A mark among the ids of holds keeps a second run from touching the run that the first one let in.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5] see grant.lua  ARGV[6] id of the request
-- ARGV[7] and more: the owners that are meant; without any nothing is changed
-- Returns the owners; none if it is free, if others hold it, or in a second run
-- Publishes 'lost:<length of owner>:<owner><key>' on the channels of the owners' sessions; then, if
--   it was held, the message of grant.lua or, if there is none, '0' on the lock's channel
-- include refused, revoke, grant
local fields = redis.pcall('HGETALL', KEYS[1])
local mark = 'forced:' .. ARGV[6]
local marked = redis.pcall('SISMEMBER', KEYS[4], mark)
local bad = refused(fields, ': the lock') or refused(marked, ': the ids of holds')
  or refused(redis.pcall('ZCARD', KEYS[2]), ': the queue')
  or refused(redis.pcall('HLEN', KEYS[3]), ': what is known of the queue')
if bad or marked == 1 then return bad or {} end
local owners = {}
for i = 1, #fields, 2 do
  owners[#owners + 1] = fields[i]
  if fields[i] ~= 'mode' and (tonumber(fields[i + 1]) or 0) < 1 then
    return (refused({err = 'not an integer'},
      ': the lock is a hash that is no lock; its values must be counts'))
  end
end
local reply = revoke(owners, 7, ARGV[3], KEYS[1], KEYS[4])
if reply then return reply end
if grant() then
  redis.call('SADD', KEYS[4], mark)
  redis.call('PEXPIRE', KEYS[4], redis.call('PTTL', KEYS[1]))
else
  redis.call(ARGV[2], ARGV[1], '0')
end
return owners
