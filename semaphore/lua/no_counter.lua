-- KEYS[3] is there while Redis remembers requests of this session to a Counter of the same name.
-- include refused
if redis.call('EXISTS', KEYS[3]) == 1 then
  return (refused({err = 'not an integer'}, ': a Counter of this name is in use'))
end
