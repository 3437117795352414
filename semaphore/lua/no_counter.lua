-- A Counter of the same name has an integer where the free permits are. KEYS[3] is there while Redis
-- remembers requests of this session to one.
-- include refused
if redis.call('EXISTS', KEYS[3]) == 1 then
  return (refused({err = 'not an integer'}, ': a Counter of this name is in use'))
end
