// Benchmarks of the locks against a real redis-server, which they start themselves.
// Times are given as ratios to a floor measured in the same run, since the round trip
// of a machine drifts; commands and allocations do not.
package relock_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func open(b *testing.B, s *redistest.Server) *rlock.Session {
	b.Helper()
	ses, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ses.Close() })
	return ses
}

// floor is what any lock on Redis has to pay: two plain round trips, SET NX PX and
// compare-and-delete, one after the other. It returns the time of one such cycle.
func floor(b *testing.B, c rueidis.Client, n int) time.Duration {
	b.Helper()
	del := rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	ctx := context.Background()
	cycle := func() {
		err := c.Do(ctx, c.B().Set().Key("floor").Value("me").Nx().PxMilliseconds(30000).Build()).Error()
		if err == nil {
			err = del.Exec(ctx, c, []string{"floor"}, []string{"me"}).Error()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for range 100 {
		cycle()
	}
	began := time.Now()
	for range n {
		cycle()
	}
	return time.Since(began) / time.Duration(n)
}

// measure runs cycle b.N times and reports its time as a ratio to the floor, measured
// in turns with it, and the commands that it sent.
func measure(b *testing.B, s *redistest.Server, cycle func()) {
	b.Helper()
	plain := s.Client(b)
	for range 100 {
		cycle()
	}
	b.ReportAllocs()
	s.ResetStats(b)
	var base time.Duration
	rounds := 0
	const slice = 2000
	b.ResetTimer()
	for left := b.N; left > 0; left -= slice {
		for range min(left, slice) {
			cycle()
		}
		b.StopTimer()
		if rounds < 20 {
			base += floor(b, plain, 500)
			rounds++
		}
		b.StartTimer()
	}
	b.StopTimer()
	per := b.Elapsed() / time.Duration(b.N)
	// commandstats also counts what scripts call, so only scripts are counted here;
	// the floor's own are taken out.
	scripts := float64(s.Commands(b)["evalsha"]-600*rounds) / float64(b.N)
	b.ReportMetric(float64(base)/float64(rounds)/float64(per), "x-floor")
	b.ReportMetric(scripts, "scripts/op")
}

func BenchmarkUncontended(b *testing.B) {
	s := redistest.Real(b)
	m := rlock.New(open(b, s), "x")
	ctx := context.Background()
	measure(b, s, func() {
		_, h, err := m.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Unlock(); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkReentry is one more nested pair under a lock that is held.
func BenchmarkReentry(b *testing.B) {
	s := redistest.Real(b)
	m := rlock.New(open(b, s), "x")
	section, h, err := m.Lock(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	measure(b, s, func() {
		_, h, err := m.Lock(section)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Unlock(); err != nil {
			b.Fatal(err)
		}
	})
	if err := h.Unlock(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHeld reports what ten thousand held locks cost each.
func BenchmarkHeld(b *testing.B) {
	s := redistest.Real(b)
	ses := open(b, s)
	const n = 10_000
	mutexes := make([]*rlock.Mutex, n)
	for i := range mutexes {
		mutexes[i] = rlock.New(ses, fmt.Sprint("held-", i))
	}
	holds := make([]*rlock.Hold, n)
	ctx := context.Background()
	var bytes, goroutines float64
	for b.Loop() {
		before, g := heap(), runtime.NumGoroutine()
		for i, m := range mutexes {
			_, h, err := m.Lock(ctx)
			if err != nil {
				b.Fatal(err)
			}
			holds[i] = h
		}
		bytes = float64(heap()-before) / n
		goroutines = float64(runtime.NumGoroutine()-g) / n
		for _, h := range holds {
			if err := h.Unlock(); err != nil {
				b.Fatal(err)
			}
		}
		clear(holds)
	}
	b.ReportMetric(bytes, "B/held")
	b.ReportMetric(goroutines, "goroutines/held")
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
