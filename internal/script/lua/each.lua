-- each runs a command on a key for each of ARGV from first to last, with a prefix, and returns the sum
-- of the replies. By SISMEMBER it tells how many holds of this session stand among the ids in Redis.
-- All of an owner's are this session's if they are as many as Redis counts. That count does not say so
-- alone: a named owner's lock may have been lost, and be held by another process.
--
-- What has been taken out may have been the last there was. While the slot moves a key that is gone
-- cannot be asked for any more; whatever else comes is not in it.
local function each(command, key, prefix, first, last)
  local sum = 0
  for i = first, last do
    local n = (sum > 0 and redis.pcall or redis.call)(command, key, prefix .. ARGV[i])
    sum = sum + (type(n) == 'number' and n or 0)
  end
  return sum
end
