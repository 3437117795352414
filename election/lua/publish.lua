-- publish.lua: publishes the value of a leader; changes nothing after a later one of the same leader.
-- KEYS[1] the lock: hash, owner -> holds; read only
-- KEYS[2] the leader: hash of owner, term, revision, value; no TTL; valid while its owner is in KEYS[1]
-- ARGV[1] owner  ARGV[2] term  ARGV[3] revision: grows with each value of this owner
-- ARGV[4] value  ARGV[5] channel of the election  ARGV[6] publish
-- Returns 1, or 0 if that owner does not lead
-- Publishes the term if the value, or the leader, is new.
-- include refused
local leads = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
local record = redis.pcall('HMGET', KEYS[2], 'owner', 'revision')
local bad = refused(leads) or refused(record)
if bad or leads == 0 then return bad or 0 end
if record[1] == ARGV[1] and tonumber(record[2] or 0) >= tonumber(ARGV[3]) then return 1 end
redis.call('HSET', KEYS[2], 'owner', ARGV[1], 'term', ARGV[2], 'revision', ARGV[3], 'value', ARGV[4])
redis.call(ARGV[6], ARGV[5], ARGV[2])
return 1
