-- value is the integer at KEYS[1], as Redis has it; false if there is none.
-- include refused, integer
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return (refused(value)) end
if value and not integer(value) then
  return (refused({err = 'not an integer'}, ': the value is not an integer'))
end
