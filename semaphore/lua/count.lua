-- count.lua: the value of a counter. Read-only.
--
-- KEYS[1]  the counter: integer
-- Returns  the value in decimal digits; '0' if the counter does not exist
--          WRONGTYPE error
-- Publishes nothing.
local wrongtype = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return redis.error_reply(wrongtype)
end
if value and not ((value == '0' or string.match(value, '^-?[1-9]%d*$')) and #value <= 18) then
  return redis.error_reply(wrongtype .. ': the counter is not an integer')
end
return value or '0'
