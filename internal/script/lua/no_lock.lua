-- no_lock returns WRONGTYPE if a hash at KEYS[1] is no lock; nil if it is one, of whichever kind. A
-- lock has a TTL, and one field, an owner with its count; or the mode of a read-write lock, with any
-- number of owners: then the second result is true; else the third is the owner. It looks at two fields at most.
local function no_lock()
  local mode, why, all = redis.call('HGET', KEYS[1], 'mode'), nil, nil
  local both = mode == 'read' or mode == 'write'
  if redis.call('PTTL', KEYS[1]) == -1 then
    why = 'it has no TTL'
  elseif not both and redis.call('HLEN', KEYS[1]) > 1 then
    why = 'it has several fields, and no mode'
  elseif not both then
    all = redis.call('HGETALL', KEYS[1])
    if not string.find(all[2] or '1', '^[1-9]%d*$') then why = 'its field is no count' end
  end
  return why and (refused({err = 'wrong kind of value'}, ': the hash is no lock: ' .. why
    .. '; a lock has a TTL, and counts for its owners. It was left as it is')), both, all and all[1]
end
