-- leader.lua: who leads. Read-only.
-- KEYS[1], KEYS[2] see publish.lua
-- Returns {owner, term, value}; {} if nobody leads; {1} if the leader has not published yet
-- include refused
local record = redis.pcall('HMGET', KEYS[2], 'owner', 'term', 'value')
local bad = refused(record)
if bad then return bad end
local owners = redis.pcall('HLEN', KEYS[1])
bad = refused(owners)
if bad or owners == 0 then return bad or {} end
local leads = record[1] and redis.pcall('HEXISTS', KEYS[1], record[1])
return refused(leads) or leads == 1 and record or {1}
