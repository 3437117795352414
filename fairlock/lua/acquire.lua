-- acquire.lua: takes the fair lock if nobody has it or waits; else puts the caller's run in the
-- queue, or lets it join the entry of its session that is last there. It also counts one more hold
-- of a named owner that has the lock, and takes up what was granted. It tells the run's last number
-- and how many wait, and never adds: a taken position stays; one lost by silence is taken anew.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5] see grant.lua  ARGV[6] owner  ARGV[7] lease in ms
-- ARGV[8] how many fencing tokens to reserve; left out with what follows if that says nothing
-- ARGV[9] id of the hold of a named owner, or ''  ARGV[10] entry; '' for a caller that does not wait
-- ARGV[11] the entry to join if the queue's last, or ''  ARGV[12] number of the run's last waiter
-- ARGV[13] what KEYS[3] says of the entry, but for that number; ARGV[14] the same of that of ARGV[11]
-- ARGV[15] session  ARGV[16] what KEYS[3] says of the session, but for the time
-- ARGV[17] the position that the entry had before; 0: it gets one at the end; -1: a caller that does
--   not wait comes behind waiters who may not be in the queue yet
-- ARGV[18] for how many ms the fencing token outlives the lock; left out: it has no end
-- Returns 1, for {1, 1, 0, 1}, or {1, holds, highest token or 0, 0}: granted, for a lease at least
--   {0, ms to ask again after or -1: unknown, Redis's time in ms, position or 0: it has joined}
-- Publishes the message of grant.lua
local owner, tokens, id, entry = ARGV[6], ARGV[8] or '0', ARGV[9] or '', ARGV[10] or ''
local function take() -- returns the reply; or nil and what Redis says of the token
  local token = tokens ~= '0' and redis.pcall('INCRBY', KEYS[5], tokens) or 0
  if type(token) == 'table' then return nil, token end
  if id ~= '' then -- first, so that a release finds the hold wherever an ACL has ended this
    redis.call('DEL', KEYS[4]) -- ids of an earlier life
    redis.call('SADD', KEYS[4], id)
  end
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  if ARGV[18] and redis.call('PTTL', KEYS[5]) < ARGV[7] + ARGV[18] then
    redis.call('PEXPIRE', KEYS[5], string.format('%.0f', ARGV[7] + ARGV[18]))
  end
  if id ~= '' then redis.call('PEXPIRE', KEYS[4], ARGV[7]) end
  return tokens == '0' and 1 or {1, 1, token, 0}
end
local taken, bad
if ARGV[17] ~= '-1' and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) == 0 then
  taken, bad = take()
  if taken then return taken end
end
-- include refused, grant
local no_lock = ': the lock is a hash that is no lock; its values must be counts'
local no_token = ': the fencing token is not an integer that can be counted up'
if bad then return (refused(bad, no_token)) end
local held = redis.pcall('HGET', KEYS[1], owner)
bad = refused(held, ': the lock')
if bad then return bad end
if held then
  local counted = id == '' and 1 or redis.pcall('SISMEMBER', KEYS[4], id)
  bad = refused(counted, ': the ids of holds')
  local token = tonumber(tokens ~= '0' and redis.pcall('GET', KEYS[5]) or 0)
  held = tonumber(held)
  if bad then return bad end
  if not held or held < 1 then return (refused({err = 'not an integer'}, no_lock)) end
  if not token then return (refused({err = 'not an integer'}, no_token)) end
  local ttl, left = tonumber(ARGV[7]), redis.call('PTTL', KEYS[1])
  if held > 1 or counted == 0 or left > math.ceil(ARGV[5] / 4) then
    ttl = math.max(left, ttl) -- else it is this hold's alone, and no more than a grant to be taken up
  end
  ttl = string.format('%.0f', ttl)
  redis.call('PEXPIRE', KEYS[1], ttl)
  if counted == 0 then
    held = redis.call('HINCRBY', KEYS[1], owner, 1)
    redis.call('SADD', KEYS[4], id)
  end
  if id ~= '' then
    redis.call('PEXPIRE', KEYS[4], ttl)
    leave(entry) -- it got in elsewhere
  end
  outlive(KEYS[5], ttl, ARGV[18])
  return {1, held, token, 0}
end
local free = redis.call('EXISTS', KEYS[1]) == 0
local look = not free and (entry == '' or ARGV[11] == '')
local fields = look and redis.call('HSCAN', KEYS[1], 0)[2]
for i = 1, look and #fields or 0, 2 do
  if fields[i] ~= 'mode' and (tonumber(fields[i + 1]) or 0) < 1 then -- (that is a read-write lock's)
    return (refused({err = 'not an integer'}, no_lock))
  end
end
local token = tokens ~= '0' and redis.pcall('GET', KEYS[5])
if token and not (type(token) == 'string' and #token <= 15 and string.find(token, '^%d+$')) then
  return (refused({err = 'not an integer'}, no_token))
end
if entry == '' then
  bad = refused(redis.pcall('ZCARD', KEYS[2]), ': the queue')
  if bad then return bad end
  local given, mute
  if free then given, mute = grant() end
  if free and not given and not mute and ARGV[17] ~= '-1' then -- the waiters have died, or are passed over
    taken, bad = take()
    return taken or (refused(bad, no_token))
  end
  return {0, -1, 0, 0}
end
local joins, last = ARGV[11], tonumber(ARGV[12])
local position = redis.pcall('ZSCORE', KEYS[2], entry)
local known = redis.pcall('HGET', KEYS[3], joins)
bad = refused(position, ': the queue') or refused(known, ': what is known of the queue')
if bad then return bad end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local tail = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local life = ARGV[16] .. string.format('%.0f', now + ARGV[5])
if ARGV[18] then redis.call('HSET', KEYS[3], 'token', ARGV[18]) end
if known and not position then
  local done = (tonumber(string.sub(known, 14)) or 0) >= last
  if done or tail[1] == joins then
    redis.call('HSET', KEYS[3], 's' .. ARGV[15], life, joins, done and known or ARGV[14] .. ARGV[12])
    return {0, -1, now, 0}
  end
end
redis.call('HSET', KEYS[3], 's' .. ARGV[15], life, entry, ARGV[13] .. ARGV[12])
local behind = not position and ARGV[17] == '0' and tail[1] and not free
if not position then
  position = tonumber(ARGV[17])
  if position == 0 then
    position = math.max((tonumber(tail[2]) or 0) + 1, clock[1] * 1000000 + clock[2])
  end
  redis.call('ZADD', KEYS[2], string.format('%.0f', position), entry)
end
keep()
if free and grant({[entry] = true}) == entry then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('PEXPIRE', KEYS[4], ARGV[7])
  outlive(KEYS[5], ARGV[7], ARGV[18])
  return {1, 1, tokens ~= '0' and tonumber(redis.call('GET', KEYS[5])) or 0, 0}
end
local ms = -1
if not behind and redis.call('ZRANGE', KEYS[2], 0, 0)[1] == entry then
  ms = redis.call('PTTL', KEYS[1])
  ms = ms == -2 and 1 or ms -- where time passes inside a script (miniredis) the lock may have ended
end
return {0, ms, now, tonumber(position)}
