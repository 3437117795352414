-- refused returns what a script answers when a command got an error from pcall, nil if it got none:
-- WRONGTYPE if the key holds something else than it should (made by hand, for not every Redis tells
-- a code in the error), and then true as the second result. Any other error, as NOREPLICAS or that of
-- an ACL, is passed on as it is. A script tells what it finds by itself with an error of its own.
local function refused(reply, what)
  local err = type(reply) == 'table' and reply.err
  if not err then return nil end
  if string.find(err, 'wrong kind of value', 1, true) or string.find(err, 'not an integer', 1, true)
      or string.find(err, 'would overflow', 1, true) then
    return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value'
      .. (what or '')), true
  end
  return reply
end
