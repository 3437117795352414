// Benchmarks of the locks against a real redis-server, which they start themselves.
// Times are given as ratios to a floor measured in the same run, since the round trip
// of a machine drifts; commands and allocations do not.
package relock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func open(b *testing.B, s *redistest.Server) *rlock.Session {
	b.Helper()
	return openWith(b, s, rlock.Config{})
}

func openWith(b *testing.B, s *redistest.Server, cfg rlock.Config) *rlock.Session {
	b.Helper()
	ses, err := rlock.Dial(context.Background(), s.Option(), cfg)
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

// BenchmarkHandOver is the time from one session's Unlock until another session's waiter
// has the lock, in round trips: one EVALSHA after as long an idleness, in turns with it.
func BenchmarkHandOver(b *testing.B) {
	for name, mutex := range map[string]func(*rlock.Session) *rlock.Mutex{
		"rlock":    func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, "x") },
		"fairlock": func(s *rlock.Session) *rlock.Mutex { return fairlock.New(s, "x").Mutex },
	} {
		b.Run(name, func(b *testing.B) { handOver(b, mutex) })
	}
}

// idle is what passes before a hand-over, so that nothing is under way any more.
const idle = 2 * time.Millisecond

func handOver(b *testing.B, mutex func(*rlock.Session) *rlock.Mutex) {
	s := redistest.Real(b)
	waiting := make(chan struct{}, 1)
	trace := &rlock.Trace{Waiting: func(string, string) { waiting <- struct{}{} }}
	sessions := []*rlock.Session{openWith(b, s, rlock.Config{Trace: trace}), openWith(b, s, rlock.Config{Trace: trace})}
	plain := s.Client(b)
	one := rueidis.NewLuaScript(`return redis.call('EXISTS', KEYS[1])`)
	ctx := context.Background()
	trip := func() time.Duration {
		time.Sleep(idle)
		began := time.Now()
		if err := one.Exec(ctx, plain, []string{"nothing"}, nil).Error(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	trip()
	type entry struct {
		hold *rlock.Hold
		at   time.Time
		err  error
	}
	_, hold, err := mutex(sessions[0]).Lock(ctx)
	if err != nil {
		b.Fatal(err)
	}
	var hands, trips []time.Duration
	entered := make(chan entry, 1)
	for i := 0; b.Loop(); i++ {
		next := mutex(sessions[(i+1)%2])
		go func() {
			_, h, err := next.Lock(ctx)
			entered <- entry{h, time.Now(), err}
		}()
		<-waiting
		time.Sleep(idle)
		began := time.Now()
		if err := hold.Unlock(); err != nil {
			b.Fatal(err)
		}
		e := <-entered
		if e.err != nil {
			b.Fatal(e.err)
		}
		hold = e.hold
		hands = append(hands, e.at.Sub(began))
		trips = append(trips, trip())
	}
	if err := hold.Unlock(); err != nil {
		b.Fatal(err)
	}
	slices.Sort(hands)
	slices.Sort(trips)
	b.ReportMetric(float64(hands[len(hands)/2])/float64(trips[len(trips)/2]), "round-trips")
	b.ReportMetric(float64(hands[len(hands)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(hands[len(hands)*99/100].Microseconds()), "µs-p99")
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
