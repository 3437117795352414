-- permit_release of Redisson 4.7.0, Copyright Redisson authors, Apache License 2.0: for comparison in benchmarks.
-- KEYS: the free permits, the channel, the taken ones
-- ARGV: id, how many, now in ms, PUBLISH or SPUBLISH
local expire = redis.call('zscore', KEYS[3], ARGV[1]);local removed = redis.call('zrem', KEYS[3], ARGV[1]);if tonumber(removed) ~= 1 then return 0;end;local value = redis.call('incrby', KEYS[1], ARGV[2]); redis.call(ARGV[4], KEYS[2], value); if tonumber(expire) <= tonumber(ARGV[3]) then return 0;end;return 1;
