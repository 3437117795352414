package rwlock_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
)

// What Redisson 4.7 does to a read-write lock, step by step, without the unlock latch.
// KEYS[1] the lock, KEYS[2] the channel; ARGV[1] owner, ARGV[2] lease in ms, ARGV[3] what
// timeout keys begin with.
const (
	javaTimeout = `local function T(owner, i) return ARGV[3] .. owner .. ':rwlock_timeout:' .. i end
`
	javaReadLock = javaTimeout + `
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == false then
  redis.call('HSET', KEYS[1], 'mode', 'read')
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('SET', T(ARGV[1], 1), 1)
  redis.call('PEXPIRE', T(ARGV[1], 1), ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return nil
end
if mode == 'read' or (mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 1) then
  local i = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('SET', T(ARGV[1], i), 1)
  redis.call('PEXPIRE', T(ARGV[1], i), ARGV[2])
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
  return nil
end
return redis.call('PTTL', KEYS[1])`

	javaReadUnlock = javaTimeout + `
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == false then
  redis.call('PUBLISH', KEYS[2], '0')
  return nil
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
local c = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
if c == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
redis.call('DEL', T(ARGV[1], c + 1))
if redis.call('HLEN', KEYS[1]) > 1 then
  local m = -3
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    local n = tonumber(redis.call('HGET', KEYS[1], field))
    if type(n) == 'number' then
      for i = n, 1, -1 do
        m = math.max(redis.call('PTTL', T(field, i)), m)
      end
    end
  end
  if m > 0 then
    redis.call('PEXPIRE', KEYS[1], m)
    return 0
  end
  if mode == 'write' then
    return 0
  end
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], '0')
return 1`

	javaWriteLock = `
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == false then
  redis.call('HSET', KEYS[1], 'mode', 'write')
  redis.call('HSET', KEYS[1], ARGV[1] .. ':write', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return nil
end
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', 1)
  redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[2])
  return nil
end
return redis.call('PTTL', KEYS[1])`

	javaWriteUnlock = `
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == false then
  redis.call('PUBLISH', KEYS[2], '1')
  return nil
end
if mode ~= 'write' or redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':write', -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[1] .. ':write')
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', KEYS[2], '1')
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
return 1`
)

// A java is one thread of a Java process.
type java struct {
	t     testing.TB
	s     *redistest.Server
	name  string
	owner string
}

// run runs a script with a lease, and returns its reply: "nil" or a number.
func (j java) run(script string, lease time.Duration) string {
	j.t.Helper()
	n, err := j.s.Do(j.t, "EVAL", script, "2", j.name, "redisson_rwlock:{"+j.name+"}",
		j.owner, strconv.FormatInt(lease.Milliseconds(), 10), "{"+j.name+"}:").AsInt64()
	if rueidis.IsRedisNil(err) {
		return "nil"
	}
	must(j.t, err)
	return strconv.FormatInt(n, 10)
}

// wants is run with the reply that must come.
func (j java) wants(script string, lease time.Duration, want string) {
	j.t.Helper()
	if got := j.run(script, lease); got != want {
		j.t.Fatalf("Java was answered %s, want %s", got, want)
	}
}

func newJava(t testing.TB, s *redistest.Server, name string, thread int) java {
	return java{t, s, name, fmt.Sprintf("0b6de3d7-9d3b-4f19-a3a4-2a2f9a1d7c11:%d", thread)}
}
