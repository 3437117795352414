-- each runs a command on a key for each of ARGV from first to last, with a prefix, and returns the sum
-- of the replies. By SISMEMBER it tells how many holds of this session stand among the ids in Redis.
-- All of an owner's are this session's if they are as many as Redis counts. That count does not say so
-- alone: a named owner's lock may have been lost, and be held by another process.
local function each(command, key, prefix, first, last)
  local sum = 0
  for i = first, last do
    sum = sum + redis.call(command, key, prefix .. ARGV[i])
  end
  return sum
end
