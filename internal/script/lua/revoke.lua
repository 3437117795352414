-- revoke ends the holds of all owners of a lock, by deleting the keys, if one of them is meant: ARGV has
-- those, from first on. It leaves a mark of them for ms, unless that is nil: a set. Then it tells the
-- session of each owner that looks like '<session id>:<number>': always by PUBLISH, which is heard in the
-- whole Cluster; prefix makes a session's channel out of its id. It returns what to answer if it has ended none.
local function revoke(owners, first, prefix, keys, mark, ms)
  local named, meant = {}, false
  for i = first, #ARGV do named[ARGV[i]] = true end
  for _, owner in ipairs(owners) do meant = meant or named[owner] end
  if not meant then return ARGV[first] and {} or owners end
  redis.call('DEL', unpack(keys))
  -- The mark comes after the DEL, since a server without memory lets a script write that has written what
  -- needs none. A user who may not write it ends the holds all the same.
  for i = 1, mark and #owners or 0 do redis.pcall('SADD', mark, owners[i]) end
  if mark and redis.pcall('PEXPIRE', mark, ms) ~= 1 then redis.pcall('DEL', mark) end
  for _, owner in ipairs(owners) do
    local session = string.match(owner, '^(.+):%d+$')
    if session then
      redis.call('PUBLISH', prefix .. session, 'lost:' .. #owner .. ':' .. owner .. KEYS[1])
    end
  end
end
