-- state.lua: the owners of a lock, their holds, and its TTL. Read-only.
-- KEYS[1] the lock: hash, owner -> holds
-- Returns {PTTL in ms, field, value, field, value, ...}; PTTL is -2 when free
-- include refused, no_lock
local fields = redis.pcall('HGETALL', KEYS[1])
local bad = refused(fields) or #fields > 0 and (no_lock())
if bad then return bad end
table.insert(fields, 1, redis.call('PTTL', KEYS[1]))
return fields
