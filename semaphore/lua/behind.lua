-- What acquire.lua does for a request that comes behind others, of which those in front see to what expires: it
-- enters the line. See there; t is Redis's time.
if waits and type(value) == 'string' and free < n and ARGV[8] ~= '1' then
  local booking, ahead
  heads, booking, ahead = entries(0)
  if ahead and heads[1] ~= ARGV[7] .. ARGV[13] and redis.pcall('ZSCORE', KEYS[2], ARGV[first_id]) == false then
    local us, now, limit = t[1] * 1000000 + t[2], t[1] * 1000 + math.floor(t[2] / 1000), free + redis.call('ZCARD', KEYS[2])
    if n <= limit then
      local bad = enter(ARGV[7] .. ARGV[13], us, us, now, ARGV[9] == '1', ARGV[12])
      return bad and refused(bad, ': the line') or {0, -1, now, us, free, limit}
    end
  end
end
