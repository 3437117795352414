-- last is the number of the session's last SetLimit or Delete, at KEYS[4]; false if there was none. It is asked for
-- before anything is written.
-- include refused
local last = redis.pcall('GET', KEYS[4])
if type(last) == 'table' then return (refused(last)) end
