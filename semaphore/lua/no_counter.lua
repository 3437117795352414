-- A Counter of the same name has an integer where the free permits are. That it is in use shows in
-- what Redis remembers of the requests of this session: KEYS[3].
-- include refused
if redis.call('EXISTS', KEYS[3]) == 1 then
  return (refused({err = 'not an integer'}, ': a Counter of this name is in use'))
end
