-- record.lua: says who a session is, for operators, when it begins.
-- KEYS[1] the record: string  ARGV[1] JSON before the time  ARGV[2] JSON behind  ARGV[3] TTL in ms
-- Returns when the session began, in ms by Redis's clock
-- include clock, int
local started = int(now)
redis.call('SET', KEYS[1], ARGV[1] .. started .. ARGV[2], 'PX', ARGV[3])
return started
