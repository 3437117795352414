-- try_set.lua: makes a counter that does not exist yet.
--
-- KEYS[1] to KEYS[3], ARGV[1] to ARGV[4]  see counter.lua; the outcome is the reply
-- ARGV[5]  the value
-- ARGV[6], ARGV[7]  channel of the counter, and PUBLISH or SPUBLISH
-- Returns  1 if this request made it, else 0
-- Publishes the value if it was made.
-- include counter
if outcome then
  renew()
  return tonumber(outcome)
elseif value then
  remember('0')
  return 0
end
redis.call('SET', KEYS[1], ARGV[5])
remember('1')
redis.call(ARGV[7], ARGV[6], ARGV[5])
return 1
