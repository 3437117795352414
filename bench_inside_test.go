package relock_test

import (
	"context"
	"embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

//go:embed testdata/redisson/*.lua
var redissonLua embed.FS

// An insideKind is a kind of lock whose scripts are measured beside those of Redisson.
type insideKind struct {
	name string
	ours func(s *rlock.Session) insideLock
	// theirs are the scripts by which Redisson takes the lock and releases it.
	theirs []insideScript
}

type insideScript struct {
	name       string
	keys, args []string
}

type insideLock = func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)

const (
	javaOwner   = "5d1e8a1c-8f3a-4d42-9c58-1f5a1d2f7d10:42"
	javaLatch   = "redisson_unlock_latch:{x}:9f86d081884c7d659a2feaa0c55ad015"
	javaTimeout = "{x}:" + javaOwner + ":rwlock_timeout"
)

var insideKinds = []insideKind{
	{"plain", func(s *rlock.Session) insideLock { return rlock.New(s, "x").Lock }, []insideScript{
		{"lock", []string{"x"}, []string{"30000", javaOwner}},
		{"unlock", []string{"x", "redisson_lock__channel:{x}", javaLatch}, []string{"0", "30000", javaOwner, "PUBLISH", "18000"}},
	}},
	{"read", func(s *rlock.Session) insideLock { return rwlock.New(s, "x").RLock }, []insideScript{
		{"read_lock", []string{"x", javaTimeout}, []string{"30000", javaOwner, javaOwner + ":write"}},
		{"read_unlock", []string{"x", "redisson_rwlock:{x}", javaTimeout, "{x}", javaLatch}, []string{"0", javaOwner, "PUBLISH", "18000"}},
	}},
	{"write", func(s *rlock.Session) insideLock { return rwlock.New(s, "x").Lock }, []insideScript{
		{"write_lock", []string{"x"}, []string{"30000", javaOwner + ":write"}},
		{"write_unlock", []string{"x", "redisson_rwlock:{x}", javaLatch}, []string{"1", "30000", javaOwner + ":write", "PUBLISH", "18000"}},
	}},
}

// BenchmarkInsideRedis is the time that the scripts of one Lock and Unlock take inside Redis,
// beside those that Redisson sends, when nobody else wants the lock. The commands are sent in
// pipelines, so that Redis is warm. Both are measured in slices, in turns, and the best slice of
// each counts. Redisson's DEL of its latch, a third command for each Unlock, is sent and not
// counted.
func BenchmarkInsideRedis(b *testing.B) {
	for _, kind := range insideKinds {
		b.Run(kind.name, func(b *testing.B) { kind.run(b) })
	}
}

// A slice is so many pipelines of so many cycles.
const insidePipelines, insideCycles = 10, 100

func (k insideKind) run(b *testing.B) {
	s := redistest.Real(b)
	c := s.Client(b)
	cycles := [2][][]string{k.ourCommands(b, s), k.redisson(b, c)}
	best := [2]float64{1e9, 1e9}
	b.ResetTimer()
	for done := 0; done < b.N; done += insidePipelines * insideCycles {
		for i, cycle := range cycles {
			best[i] = min(best[i], insideRedis(b, s, c, cycle))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(best[0], "ours-µs")
	b.ReportMetric(best[1], "redisson-µs")
	b.ReportMetric(best[0]/best[1], "x-redisson")
}

// ourCommands returns what one Lock and Unlock send.
func (k insideKind) ourCommands(b *testing.B, s *redistest.Server) (cmds [][]string) {
	b.Helper()
	ses, p := locktest.DialProxy(b, s, rlock.Config{})
	p.Reset()
	_, h, err := k.ours(ses)(b.Context())
	if err == nil {
		err = h.Unlock()
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, line := range p.Log() {
		if strings.HasPrefix(line, "EVALSHA ") {
			cmds = append(cmds, strings.Split(line, " "))
		}
	}
	if len(cmds) != 2 {
		b.Fatalf("a Lock and Unlock sent %q; it should be two scripts", cmds)
	}
	return cmds
}

// redisson returns what Redisson sends for one lock and unlock.
func (k insideKind) redisson(b *testing.B, c rueidis.Client) (cmds [][]string) {
	b.Helper()
	for _, sc := range k.theirs {
		src, err := redissonLua.ReadFile("testdata/redisson/" + sc.name + ".lua")
		if err != nil {
			b.Fatal(err)
		}
		sha, err := c.Do(b.Context(), c.B().ScriptLoad().Script(string(src)).Build()).ToString()
		if err != nil {
			b.Fatal(err)
		}
		cmds = append(cmds, slices.Concat([]string{"EVALSHA", sha, strconv.Itoa(len(sc.keys))}, sc.keys, sc.args))
	}
	return append(cmds, []string{"DEL", javaLatch})
}

var evalshaTime = regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`)

// insideRedis returns how long the scripts of one cycle take in Redis, in µs.
func insideRedis(b *testing.B, s *redistest.Server, c rueidis.Client, cycle [][]string) float64 {
	b.Helper()
	s.ResetStats(b)
	for range insidePipelines {
		var cmds rueidis.Commands
		for range insideCycles {
			for _, cmd := range cycle {
				cmds = append(cmds, c.B().Arbitrary(cmd...).Build())
			}
		}
		for i, r := range c.DoMulti(b.Context(), cmds...) {
			if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
				b.Fatalf("%s: %v", cycle[i%len(cycle)], err)
			}
		}
	}
	if keys := s.Keys(b); len(keys) != 0 {
		b.Fatalf("the cycles leave %q", keys)
	}
	text, err := s.Do(b, "INFO", "commandstats").ToString()
	if err != nil {
		b.Fatal(err)
	}
	m := evalshaTime.FindStringSubmatch(text)
	if m == nil {
		b.Fatalf("no scripts in %q", text)
	}
	usec, _ := strconv.ParseFloat(m[1], 64)
	return usec / (insidePipelines * insideCycles)
}
