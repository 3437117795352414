-- state.lua: who holds a lock, how deep, and for how long. Read-only.
--
-- KEYS[1]  the lock: hash
-- KEYS[2]  our readers: zset, owner -> when its holds expire
-- Returns  {mode, PTTL in ms, owner, holds of both sides, owner, holds, ...} without
--          readers of ours whose lease is over; mode is '' and PTTL -2 when free
--          WRONGTYPE error; so too for a lock of another kind
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local all = redis.pcall('HGETALL', KEYS[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local dead = redis.pcall('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
if all.err or dead.err then
  return redis.error_reply(wrongtype)
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
if #all > 0 and mode ~= 'read' and mode ~= 'write' then
  return redis.error_reply(wrongtype .. ': the key is another kind of lock')
end
if #owners == 0 then
  return {'', -2}
end
local reply = {mode, redis.call('PTTL', KEYS[1])}
for _, owner in ipairs(owners) do
  reply[#reply + 1] = owner
  reply[#reply + 1] = holds[owner]
end
return reply
