-- request.lua: how the scripts begin that change a latch. A request that has changed it is remembered,
-- so that it does not do so twice: then earlier is true.
-- KEYS[1] the latch: integer, no TTL; not there when it is open  KEYS[2] the request: '1'; expires
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] for how many ms from this run on that is remembered
-- include value
local earlier = redis.pcall('GET', KEYS[2])
if type(earlier) == 'table' then return (refused(earlier)) end
if earlier then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
