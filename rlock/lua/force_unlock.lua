-- force_unlock.lua: ends any owner's hold, tells the sessions of those owners, and
-- wakes a waiter. Run twice it leaves the same state; the second run finds nothing.
--
-- KEYS[1]  the lock: hash, owner -> holds; deleted
-- ARGV[1]  channel of the lock
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  the prefix that makes a session's channel out of a session id
-- Returns  the owners whose hold was ended, none if it was free
--          WRONGTYPE error: nothing was changed
-- Publishes 'lost:<length of owner>:<owner><key>' on the channel of the session of
--          each owner that is '<session id>:<number>' (always PUBLISH: it is heard in
--          the whole Cluster), then '0' on the lock's channel if it was held.
local owners = redis.pcall('HKEYS', KEYS[1])
if owners.err then -- an ACL's refusal is not about the type
  return string.find(owners.err, '[Uu]ser ') and owners
    or redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
if #owners == 0 then
  return owners
end
redis.call('DEL', KEYS[1])
for _, owner in ipairs(owners) do
  local session = string.match(owner, '^(.+):%d+$')
  if session then
    redis.call('PUBLISH', ARGV[3] .. session, 'lost:' .. #owner .. ':' .. owner .. KEYS[1])
  end
end
redis.call(ARGV[2], ARGV[1], '0')
return owners
