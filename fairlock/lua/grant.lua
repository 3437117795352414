-- grant.lua: how the fair lock's scripts let the next run in, where one waits. It needs `refused`.
-- KEYS[1] the lock: hash, owner -> holds, as that of rlock
-- KEYS[2] the queue: sorted set, entry -> position; the lowest is served first. A position is the
--   time of Redis at the arrival, in µs, so that later ones are always higher
-- KEYS[3] what is known of the queue: hash. entry -> "<o: more may join><f: fenced><n: the owner is
--   named><how many wait, 10 digits><number of the last of them>", and "s<session>" -> "<d: it
--   cannot be told anything><its QueueLease in ms, 13 digits><until when it keeps its entries if it
--   is not heard of again, in ms>"; a flag that is not set is a -; and "token" -> for how many ms the
--   fencing token outlives the lock, if it has an end
-- KEYS[4] the ids of holds: set, ends with the lock  KEYS[5] the fencing token, if used: an integer
-- ARGV[1] channel  ARGV[2] publish  ARGV[3] what makes a session's channel out of its id
-- ARGV[4] counts, of PUBLISH and PUBSUB  ARGV[5] the QueueLease of the caller, in ms
-- The message, on the channel of the session that is let in:
--   'grant:<now>:<token>:<how many tokens>:<last>:<position>:<length of entry>:<entry><key>'
-- An entry is "<length of session, 5 digits><session>" and, for a private owner, what its id has
-- behind the session's; for a named one "#<id of the hold, 32 letters><owner>". What is silent, and
-- how long a grant waits to be taken up, goes by the QueueLease of the waiters.
-- include outlive
-- owner_of returns the owner that an entry stands for, and, if it is named, the id of its hold.
local function owner_of(entry, cut, named)
  if named then return string.sub(entry, cut + 34), string.sub(entry, cut + 2, cut + 33) end
  return string.sub(entry, 6)
end
-- keep lets the queue live for as long as a session in it may.
local function keep()
  outlive(KEYS[2], ARGV[5], ARGV[5])
  outlive(KEYS[3], ARGV[5], ARGV[5])
end
-- settle takes what is known of an entry that has left the queue away.
local function settle(entry)
  if redis.call('EXISTS', KEYS[2]) == 0 then
    redis.call('DEL', KEYS[3])
  else
    redis.pcall('HDEL', KEYS[3], entry) -- (it may be of another type)
  end
end
-- leave takes an entry out of the queue, and what is known of it also if the queue was deleted.
local function leave(entry)
  if redis.pcall('ZREM', KEYS[2], entry) == 1 or redis.pcall('HDEL', KEYS[3], entry) == 1 then
    settle(entry)
  end
end
-- unheard reports that a message to a session would find no listener. The script asks before it
-- publishes: after a failover a session may listen at a replica, which this does not count but which
-- passes messages on. A session counts as listening where the server does not tell, or not of all nodes.
local function unheard(session, life)
  if ARGV[4] ~= '1' or string.sub(life, 1, 1) == 'd' then return false end
  return redis.pcall('PUBSUB', 'NUMSUB', ARGV[3] .. session)[2] == 0
end
-- grant gives the free lock to the first entry whose session is alive, tells that, and returns it,
-- or nil. A grant that was published stands. Entries of dead sessions leave the queue; those of a
-- session that is silent, or unheard, keep their positions until it counts as dead. Those in `mine`
-- are not told: their session asks. If Redis lets this user tell nobody, the lock stays free, the entry
-- keeps its place for the next heartbeat of its session, and the second result is true.
local function grant(mine)
  -- While the slot moves the lock cannot be made here, and its next call goes to the other node.
  if type(redis.pcall('EXISTS', KEYS[1])) == 'table' then return nil end
  local clock = redis.call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local back, given, gone, stuck, mute = {}, nil, nil, nil, nil -- back: what goes back to its position
  while not given and not stuck do
    local top = redis.pcall('ZPOPMIN', KEYS[2])
    -- A server that takes no writes now ends the script.
    if top.err and not select(2, refused(top)) then redis.call('ZPOPMIN', KEYS[2]) end
    local entry, stays = top[1], false
    if not entry then break end
    local cut = 5 + (tonumber(string.sub(entry, 1, 5)) or 0)
    local session = string.sub(entry, 6, cut)
    local got = redis.pcall('HMGET', KEYS[3], entry, 's' .. session, 'token')
    local run, life = got[1], got[2] or ''
    local lease, keeps = tonumber(string.sub(life, 2, 14)), tonumber(string.sub(life, 15)) or 0
    if got.err then
      stuck = true -- the waiters that ask are told why
    elseif not run or not lease or keeps < now + 1 then
      gone = entry
      redis.call('HDEL', KEYS[3], entry)
    elseif lease - (keeps - now) > lease * 11 / 24 then
      stays = true
    elseif not (mine and mine[entry]) and unheard(session, life) then
      -- As silent as one that missed two heartbeats, until it is heard of again.
      local till = string.format('%.0f', now + math.floor(lease * 13 / 24) - 1)
      redis.call('HSET', KEYS[3], 's' .. session, string.sub(life, 1, 14) .. till)
      stays = true
    else
      local n, last = tonumber(string.sub(run, 4, 13)) or 1, tonumber(string.sub(run, 14)) or 0
      local fenced = string.sub(run, 2, 2) == 'f'
      local token = fenced and redis.pcall('INCRBY', KEYS[5], n) or 0
      stuck = type(token) == 'table'
      if not stuck then
        given = entry
        local owner, id = owner_of(entry, cut, string.sub(run, 3, 3) == 'n')
        local ttl = string.format('%.0f', math.ceil(lease / 4))
        if fenced then outlive(KEYS[5], ttl, got[3]) end
        redis.call('HSET', KEYS[1], owner, 1)
        redis.call('PEXPIRE', KEYS[1], ttl)
        if id then
          redis.call('DEL', KEYS[4]) -- ids of an earlier life
          redis.call('SADD', KEYS[4], id)
          redis.call('PEXPIRE', KEYS[4], ttl)
        end
        mute = not (mine and mine[entry]) and type(redis.pcall('PUBLISH', ARGV[3] .. session,
          'grant:' .. string.format('%.0f:%.0f:%.0f:%.0f:%.0f:%.0f:', now, token, n, last,
            tonumber(top[2]), #entry) .. entry .. KEYS[1])) == 'table'
        if mute then
          given, stuck = nil, true
          redis.call('HDEL', KEYS[1], owner)
          if id then redis.call('DEL', KEYS[4]) end
        end
      end
    end
    if stays or stuck then back[#back + 1] = top end
  end
  for _, top in ipairs(back) do redis.call('ZADD', KEYS[2], top[2], top[1]) end
  if back[1] and redis.pcall('PTTL', KEYS[2]) == -1 then keep() end
  if given or gone then settle(given or gone) end
  return given, mute
end
