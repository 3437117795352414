-- inside returns the owner of a lock that a writer has, or one of another kind: it has few fields.
local function inside()
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local owner = string.match(all[i], '^(.*):write$')
    if owner then return owner end
  end
  return all[1] ~= 'mode' and all[1] or nil
end
