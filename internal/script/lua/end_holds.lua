-- end_holds ends those of an owner's holds of which ARGV has the ids, from first to kept - 1, and
-- returns the reply; nil if the lock is gone with the last one. The TTL gets as short as the holds
-- that stay deserve, ms, but for 0; never longer: unlocking one hold never lengthens the lease of
-- another. It stays if an extension has voided the first id, or if some of the holds that stay may be
-- another session's: the owner is not private, and ARGV has not all their ids, from kept on.
-- include each
local function end_holds(ids, owner, held, first, kept, ms, private)
  local ended = each('SREM', ids, '', first, kept - 1)
  if ended == 0 then return {held, 0, -1} end
  if held <= ended then
    -- The ids are gone with the last of them, which Redis refuses to hear of while the slot moves.
    if type(redis.pcall('DEL', KEYS[1], ids)) == 'table' then redis.call('DEL', KEYS[1]) end
    return nil
  end
  held, ms = redis.call('HINCRBY', KEYS[1], owner, -ended), tonumber(ms)
  if ms > 0 and redis.call('PTTL', KEYS[1]) > ms
      and redis.pcall('SISMEMBER', ids, 'x' .. ARGV[first]) ~= 1
      and (private == '1' or each('SISMEMBER', ids, '', kept, #ARGV) == held) then
    redis.call('PEXPIRE', KEYS[1], ms)
    redis.pcall('PEXPIRE', ids, ms)
  end
  return {held, 1, -1}
end
