-- each runs a command on a key for each of ARGV from first to last, with a prefix, and returns the sum
-- of the replies. All of a named owner's holds are this session's only if SISMEMBER finds as many as
-- Redis counts: its lock may have been lost, and be held by another process. What has been taken out
-- may have been the last there was, so what follows goes by pcall: the slot may be moving.
local function each(command, key, prefix, first, last)
  local sum = 0
  for i = first, last do
    local n = (sum > 0 and redis.pcall or redis.call)(command, key, prefix .. ARGV[i])
    sum = sum + (type(n) == 'number' and n or 0)
  end
  return sum
end
