-- expiries.lua: what the scripts share that look at permits by their ids.
-- include clock, int, refused
-- missing returns what to answer unless the permits of which ARGV has the ids, from first to last,
-- are all there: 0, or an error. The second result is true if Redis did not allow the question.
local function missing(taken, first, last)
  for i = first, last do
    local expires = redis.pcall('ZSCORE', taken, ARGV[i])
    local bad, other = refused(expires)
    if bad or not expires or tonumber(expires) <= now then return bad or 0, bad and not other end
  end
end
-- outlast keeps the semaphore for ms from now at least, if it has an end and ms is not 0.
local function outlast(free, taken, ms)
  if ms ~= '0' and redis.call('PTTL', free) < tonumber(ms) then
    redis.call('PEXPIRE', free, ms)
    redis.call('PEXPIRE', taken, ms)
  end
end
-- prolong gives those permits an expiry: XX, or GT if that must not come closer; and outlasts.
local function prolong(free, taken, first, last, how, expiry, ms)
  redis.call('ZREM', taken, '') -- nothing: a script that has written is not refused for want of memory
  for i = first, last do redis.call('ZADD', taken, how, int(expiry), ARGV[i]) end
  outlast(free, taken, ms)
end
