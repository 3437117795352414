-- deployment.lua: the id of this Redis, by which all processes tell it from others. The first one to
-- ask makes it. Publishes nothing.
--
-- KEYS[1]  the id: string, no TTL; made if it is not there
-- ARGV[1]  the id to make
-- Returns  the id
-- include refused
local id = redis.pcall('GET', KEYS[1])
if type(id) == 'table' then
  return (refused(id))
elseif not id then
  id = ARGV[1]
  redis.call('SET', KEYS[1], id)
end
return id
