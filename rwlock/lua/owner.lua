-- owner.lua: how the scripts begin that concern one owner. reads and writes are its holds, and expiry
-- is when the former end. bad is the error to answer; gone: the lock itself is of another type.
-- KEYS[1] the lock: hash, mode -> read or write, owner -> its read holds, owner:write -> its writes
-- KEYS[2] our readers: zset, owner -> when its holds expire, in ms of server time  ARGV[1] owner
-- KEYS[3] but for extend.lua: the line of those who wait: zset, see writers.lua and gate.lua
-- and, each at its place, the ids of this owner's holds: set, r<id> and w<id>, and x<id> for each void
-- extension; lives with them; and the reader's timeout keys, whose names end in 1, 2 and so on: strings
-- include refused, clock, int
local fields = redis.pcall('HMGET', KEYS[1], 'mode', ARGV[1], ARGV[1] .. ':write')
local expiry = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
local bad, gone = refused(fields)
bad = bad or refused(expiry)
expiry = not bad and expiry and tonumber(expiry)
local mode, reads, writes = fields[1], tonumber(fields[2] or 0) or 0, tonumber(fields[3] or 0) or 0
if mode ~= 'write' then writes = 0 end
if mode ~= 'read' and writes <= 0 then reads = 0 end -- whatever stands there is no hold
