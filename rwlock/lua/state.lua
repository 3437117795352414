-- state.lua: the owners of a lock, their holds, and its TTL. Read-only.
-- KEYS[1], KEYS[2] see owner.lua  ARGV[1] what the names of timeout keys begin with
-- Returns {mode, PTTL in ms, owner, holds of a side, ...} without ours that ended, unless Redisson shares their
--   owner and is in; {'', -2}: free
-- include refused, clock, int, no_lock, still_in
local all = redis.pcall('HGETALL', KEYS[1])
local dead = redis.pcall('ZRANGEBYSCORE', KEYS[2], '-inf', int(now))
local bad, both = refused(all) or refused(dead), true
if not bad and #all > 0 then bad, both = no_lock() end
if bad or not both then
  return bad or (refused({err = 'wrong kind of value'}, ': the key is another kind of lock'))
end
local over = {}
for _, owner in ipairs(dead) do over[owner] = true end
local reply = {redis.call('HGET', KEYS[1], 'mode'), redis.call('PTTL', KEYS[1])}
for i = 1, #all, 2 do
  local owner = all[i]
  if owner ~= 'mode' and not (over[owner] and still_in(ARGV[1] .. owner .. ':rwlock_timeout:', tonumber(all[i + 1]) or 0) <= 0) then
    reply[#reply + 1] = (string.gsub(owner, ':write$', ''))
    reply[#reply + 1] = tonumber(all[i + 1]) or 0
  end
end
return #reply > 2 and reply or {'', -2}
