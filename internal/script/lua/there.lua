-- there counts the holds of this session that stand in Redis: those of which ARGV has the ids, from
-- first to last, with a prefix in the set. All of an owner's are this session's if they are as many
-- as Redis counts. That count does not say so alone: a named owner's lock may have been lost, and be
-- held by another process.
local function there(set, prefix, first, last)
  local n = 0
  for i = first, last do
    n = n + redis.call('SISMEMBER', set, prefix .. ARGV[i])
  end
  return n
end
