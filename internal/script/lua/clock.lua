-- now is Redis's time in ms since 1970, cut to whole ones. So a ms that has begun counts as over:
-- what shall live for a lease ends at now + 1 + lease, lest it end before its time.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
