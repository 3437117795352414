-- refused returns what a script answers when a command got an error from pcall, nil if it got none:
-- WRONGTYPE if the key holds something else than it should. (It is made by hand: not every Redis
-- tells a code in the error.) The second result is true then. Any other error, as NOREPLICAS or that
-- of an ACL, is passed on as it is. What a script finds by itself it tells so:
-- refused({err = 'not an integer'}, ': the counter is not an integer').
local function refused(reply, what)
  local err = type(reply) == 'table' and reply.err
  if not err then
    return nil
  elseif string.find(err, 'wrong kind of value', 1, true) or string.find(err, 'not an integer', 1, true)
      or string.find(err, 'would overflow', 1, true) then
    return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value' .. (what or '')), true
  end
  return reply
end
