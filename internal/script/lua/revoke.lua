-- revoke ends the holds of all owners of a lock, by deleting the keys that follow, if one of them is
-- meant: ARGV has those, from first on. Then it tells the session of each owner that looks like
-- '<session id>:<number>': always by PUBLISH, which is heard in the whole Cluster; prefix makes a
-- session's channel out of its id. It returns what to answer if it has ended none.
local function revoke(owners, first, prefix, ...)
  local named, meant = {}, false
  for i = first, #ARGV do named[ARGV[i]] = true end
  for _, owner in ipairs(owners) do meant = meant or named[owner] end
  if not meant then return ARGV[first] and {} or owners end
  redis.call('DEL', ...)
  for _, owner in ipairs(owners) do
    local session = string.match(owner, '^(.+):%d+$')
    if session then
      redis.call('PUBLISH', prefix .. session, 'lost:' .. #owner .. ':' .. owner .. KEYS[1])
    end
  end
end
