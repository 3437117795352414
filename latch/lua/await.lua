-- await.lua: whether a latch is open. Read-only.
-- KEYS[1] see request.lua
-- Returns {1, -1, 0, 0, 1, -1}: it is open, for all others too; {0, -1, 0, 0, 0, -1}: it is not
-- include value
local open = (not value or tonumber(value) <= 0) and 1 or 0
return {open, -1, 0, 0, open, -1}
