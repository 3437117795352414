-- KEYS[2] is there while permits of a Semaphore of the same name are taken.
-- include refused
if redis.call('EXISTS', KEYS[2]) == 1 then
  return (refused({err = 'not an integer'}, ': permits of a Semaphore of this name are taken'))
end
