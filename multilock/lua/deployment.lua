-- deployment.lua: the id of this Redis, by which all processes tell it from others.
-- KEYS[1] the id: string, no TTL; the first process to ask makes it  ARGV[1] the id to make
-- Returns the id
-- include refused
local id = redis.pcall('GET', KEYS[1])
if id then return refused(id) or id end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
