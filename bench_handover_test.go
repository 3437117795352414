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
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// BenchmarkHandOver is the time from one session's Unlock until another session's waiter
// has the lock, in round trips: one EVALSHA after as long an idleness, in turns with it.
func BenchmarkHandOver(b *testing.B) {
	for _, kind := range []struct {
		name  string
		mutex func(*rlock.Session) *rlock.Mutex
	}{
		{"rlock", func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, "x") }},
		{"fairlock", func(s *rlock.Session) *rlock.Mutex { return fairlock.New(s, "x").Mutex }},
	} {
		b.Run(kind.name, func(b *testing.B) { handOver(b, kind.mutex) })
	}
}

// idle is what passes before a hand-over, so that nothing is under way any more.
const idle = 2 * time.Millisecond

func handOver(b *testing.B, mutex func(*rlock.Session) *rlock.Mutex) {
	s := redistest.Real(b)
	waiting := make(chan struct{}, 1)
	trace := &rlock.Trace{Waiting: func(context.Context, locktrace.Waiting) { waiting <- struct{}{} }}
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
	b.ReportMetric(float64(hands[len(hands)/2].Nanoseconds())/1000, "µs-p50")
	b.ReportMetric(float64(trips[len(trips)/2].Nanoseconds())/1000, "µs-round-trip")
	b.ReportMetric(float64(hands[len(hands)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkHeld reports what ten thousand held locks cost each: of sections whose Done is used,
// which makes their contexts ones that can be cancelled, and of others.
func BenchmarkHeld(b *testing.B) {
	for _, done := range []bool{false, true} {
		b.Run(fmt.Sprint("done=", done), func(b *testing.B) { held(b, done) })
	}
}

func held(b *testing.B, done bool) {
	s := redistest.Real(b)
	const lease = 15 * time.Second
	ses := openWith(b, s, rlock.Config{Lease: lease})
	const n = 10_000
	mutexes := make([]*rlock.Mutex, n)
	for i := range mutexes {
		mutexes[i] = rlock.New(ses, fmt.Sprint("held-", i))
	}
	holds := make([]*rlock.Hold, n)
	ctx := context.Background()
	var bytes, goroutines, renewals float64
	for b.Loop() {
		before, g := heap(), runtime.NumGoroutine()
		for i, m := range mutexes {
			section, h, err := m.Lock(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if done && section.Done() == nil {
				b.Fatal("the section's context cannot end")
			}
			holds[i] = h
		}
		bytes = float64(heap()-before) / n
		goroutines = float64(runtime.NumGoroutine()-g) / n
		s.ResetStats(b)
		time.Sleep(lease / 3)
		renewals = float64(s.Commands(b)["evalsha"])
		for _, h := range holds {
			if err := h.Unlock(); err != nil {
				b.Fatal(err)
			}
		}
		clear(holds)
	}
	b.ReportMetric(bytes, "B/held")
	b.ReportMetric(goroutines, "goroutines/held")
	b.ReportMetric(renewals, "renewals/third")
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
