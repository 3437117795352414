-- state.lua: the owners of a lock, their holds, and its TTL. Read-only.
--
-- KEYS[1]  the lock: hash
-- KEYS[2]  our readers: zset, owner -> when its holds expire
-- Returns  {mode, PTTL in ms, owner, holds of both sides, owner, holds, ...} without
--          readers of ours whose lease is over; mode is '' and PTTL -2 when free
--          WRONGTYPE error; so too for a lock of another kind, and for a hash that
--          is no lock
-- Publishes nothing.
-- include refused, clock, int, no_lock
local all = redis.pcall('HGETALL', KEYS[1])
local dead = redis.pcall('ZRANGEBYSCORE', KEYS[2], '-inf', int(now))
local bad = refused(all) or refused(dead)
if bad then
  return bad
end
local over = {}
for _, owner in ipairs(dead) do
  over[owner] = true
end
local mode, owners, holds = '', {}, {}
for i = 1, #all, 2 do
  if all[i] == 'mode' then
    mode = all[i + 1]
  elseif not over[all[i]] then
    local owner = string.match(all[i], '^(.*):write$') or all[i]
    if not holds[owner] then
      owners[#owners + 1] = owner
    end
    holds[owner] = (holds[owner] or 0) + (tonumber(all[i + 1]) or 0)
  end
end
local none, both = nil, true
if #all > 0 then
  none, both = no_lock()
end
if none or not both then
  return none or (refused({err = 'wrong kind of value'}, ': the key is another kind of lock'))
elseif #owners == 0 then
  return {'', -2}
end
local reply = {mode, redis.call('PTTL', KEYS[1])}
for _, owner in ipairs(owners) do
  reply[#reply + 1] = owner
  reply[#reply + 1] = holds[owner]
end
return reply
