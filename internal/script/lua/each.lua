-- each runs a command on a key for each of ARGV from first to last, with a prefix, and returns the sum
-- of the replies. By SISMEMBER it tells how many holds of this session are among the ids in Redis:
-- all of an owner's are if they are as many as Redis counts. That count alone does not say so: a named
-- owner's lock may have been lost, and be held by another process. What SREM or ZREM has taken out may
-- have been the last there was, so what follows goes by pcall: the slot may be moving.
local function each(command, key, prefix, first, last)
  local sum = 0
  for i = first, last do
    local n = (sum > 0 and redis.pcall or redis.call)(command, key, prefix .. ARGV[i])
    sum = sum + (type(n) == 'number' and n or 0)
  end
  return sum
end
