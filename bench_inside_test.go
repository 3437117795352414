package relock_test

import (
	"context"
	"embed"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/benchkit"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

//go:embed testdata/redisson/*.lua
var redissonLua embed.FS

// An insideKind is a kind of lock whose scripts are measured beside those of Redisson.
type insideKind struct {
	name string
	ours func(s *rlock.Session) insideLock
	// out is how many others have the lock meanwhile, which only a semaphore allows.
	out int
	// theirs are the scripts by which Redisson takes the lock and releases it.
	theirs []insideScript
}

type insideScript struct {
	name       string
	keys, args []string
}

// An insideLock takes a lock and returns how to release it.
type insideLock = func(context.Context) (release func() error, err error)

const (
	javaOwner   = "5d1e8a1c-8f3a-4d42-9c58-1f5a1d2f7d10:42"
	javaLatch   = "redisson_unlock_latch:{x}:9f86d081884c7d659a2feaa0c55ad015"
	javaTimeout = "{x}:" + javaOwner + ":rwlock_timeout"
	javaPermit  = "0123456789abcdef" // 16 bytes, as its ids are
)

var (
	// Redisson's clients send their own clock: now, and when a permit of 30 s expires.
	javaNow    = strconv.FormatInt(time.Now().UnixMilli(), 10)
	javaExpiry = strconv.FormatInt(time.Now().Add(30*time.Second).UnixMilli(), 10)

	javaPermits = []insideScript{
		{"permit_acquire", []string{"x", "{x}:timeout", "redisson_sc:{x}"}, []string{"1", javaExpiry, javaNow, "922337203685477", "PUBLISH", javaPermit}},
		{"permit_release", []string{"x", "redisson_sc:{x}", "{x}:timeout"}, []string{javaPermit, "1", javaNow, "PUBLISH"}},
	}
)

func insideMutex(lock func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)) insideLock {
	return func(ctx context.Context) (func() error, error) {
		_, h, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

func insideSemaphore(s *rlock.Session) insideLock {
	sem := semaphore.New(s, "x", benchkit.Permits)
	return func(ctx context.Context) (func() error, error) {
		_, p, err := sem.Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return p.Release, nil
	}
}

var insideKinds = []insideKind{
	{name: "plain", ours: func(s *rlock.Session) insideLock { return insideMutex(rlock.New(s, "x").Lock) }, theirs: []insideScript{
		{"lock", []string{"x"}, []string{"30000", javaOwner}},
		{"unlock", []string{"x", "redisson_lock__channel:{x}", javaLatch}, []string{"0", "30000", javaOwner, "PUBLISH", "18000"}},
	}},
	{name: "fair", ours: func(s *rlock.Session) insideLock { return insideMutex(fairlock.New(s, "x").Lock) }, theirs: []insideScript{
		{"fair_lock", []string{"x", "redisson_lock_queue:{x}", "redisson_lock_timeout:{x}"}, []string{"30000", javaOwner, "300000", javaNow}},
		{"fair_unlock", []string{"x", "redisson_lock_queue:{x}", "redisson_lock_timeout:{x}", "redisson_lock__channel:{x}", javaLatch},
			[]string{"0", "30000", javaOwner, javaNow, "PUBLISH", "18000"}},
	}},
	{name: "read", ours: func(s *rlock.Session) insideLock { return insideMutex(rwlock.New(s, "x").RLock) }, theirs: []insideScript{
		{"read_lock", []string{"x", javaTimeout}, []string{"30000", javaOwner, javaOwner + ":write"}},
		{"read_unlock", []string{"x", "redisson_rwlock:{x}", javaTimeout, "{x}", javaLatch}, []string{"0", javaOwner, "PUBLISH", "18000"}},
	}},
	{name: "write", ours: func(s *rlock.Session) insideLock { return insideMutex(rwlock.New(s, "x").Lock) }, theirs: []insideScript{
		{"write_lock", []string{"x"}, []string{"30000", javaOwner + ":write"}},
		{"write_unlock", []string{"x", "redisson_rwlock:{x}", javaLatch}, []string{"1", "30000", javaOwner + ":write", "PUBLISH", "18000"}},
	}},
	{name: "semaphore", ours: insideSemaphore, theirs: javaPermits},
	{name: "semaphore-another-out", ours: insideSemaphore, out: 1, theirs: javaPermits},
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
	ses, p := locktest.DialProxy(b, s, rlock.Config{})
	lock := k.ours(ses)
	cycles := [2][][]string{k.ourCommands(b, lock, p), k.redisson(b, c)}
	for range k.out {
		if _, err := k.ours(open(b, s))(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	left := s.Keys(b) // a semaphore stays where it is
	best := [2]float64{1e9, 1e9}
	b.ResetTimer()
	for done := 0; done < b.N; done += insidePipelines * insideCycles {
		for i, cycle := range cycles {
			best[i] = min(best[i], insideRedis(b, s, c, cycle))
			if keys := s.Keys(b); !slices.Equal(keys, left) {
				b.Fatalf("the cycles leave %q where there was %q", keys, left)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(best[0], "ours-µs")
	b.ReportMetric(best[1], "redisson-µs")
	b.ReportMetric(best[0]/best[1], "x-redisson")
}

// ourCommands returns what one acquisition and release send.
func (k insideKind) ourCommands(b *testing.B, lock insideLock, p *faulttest.Proxy) (cmds [][]string) {
	b.Helper()
	p.Reset()
	release, err := lock(b.Context())
	if err == nil {
		err = release()
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, cmd := range p.Sent() {
		if cmd[0] == "EVALSHA" {
			cmds = append(cmds, cmd)
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
