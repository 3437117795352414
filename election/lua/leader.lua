-- leader.lua: who leads. Read-only.
-- KEYS[1], KEYS[2] see publish.lua
-- Returns {owner, term, value}, or {} if there is no leader or it has not published yet
-- include refused
local record = redis.pcall('HMGET', KEYS[2], 'owner', 'term', 'value')
local bad = refused(record)
if bad or not record[1] then return bad or {} end
local leads = redis.pcall('HEXISTS', KEYS[1], record[1])
return refused(leads) or leads == 1 and record or {}
