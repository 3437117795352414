-- counter.lua: how the scripts begin that change a counter, once for each request, see
-- internal/idgen. outcome is that of an earlier run, nil if there was none.
-- KEYS[1] the counter: integer; keeps a TTL if it has one
-- KEYS[2] '{NAME}:timeout': it exists while permits of a Semaphore of that name are taken
-- KEYS[3] the requests of this session: hash, slot -> '<number>:<outcome>'; expires
-- ARGV[1] slot of the request  ARGV[2] its number  ARGV[3] for how many ms from now it is remembered
-- ARGV[4] for how many ms from now the counter is kept; 0: it has no end
-- include value, no_permits
local last = redis.pcall('HGET', KEYS[3], ARGV[1])
if type(last) == 'table' then return (refused(last)) end
local number, outcome = string.match(last or '', '^(%d+):(.*)$')
if number and tonumber(number) > tonumber(ARGV[2]) then
  return redis.error_reply('LATE a later request has the slot: the call has ended')
end
if number ~= ARGV[2] then outcome = nil end
local kept = 0
-- renew keeps what is remembered. It comes before what memory limits would refuse.
local function renew() kept = redis.call('PEXPIRE', KEYS[3], ARGV[3]) end
-- change remembers the request, and runs a command on the counter, if one is given. The second
-- result is an error if Redis does not allow this user one of both: then nothing has changed.
local function change(what, command, ...)
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[2] .. ':' .. what)
  local reply = kept == 0 and redis.pcall('PEXPIRE', KEYS[3], ARGV[3]) or 0
  if command and type(reply) == 'number' then reply = redis.pcall(command, KEYS[1], ...) end
  if type(reply) == 'table' and reply.err then
    redis.call('HSET', KEYS[3], ARGV[1], last or '0:') -- 0 is the number of no request
    if not last then redis.pcall('HDEL', KEYS[3], ARGV[1]) end
    return nil, reply
  end
  if ARGV[4] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
  return reply
end
