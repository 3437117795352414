// Benchmarks of the locks against a real redis-server, which they start themselves.
// Times are given as ratios to a floor measured in the same run, since the round trip
// of a machine drifts; commands and allocations do not.
package relock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) {
	benchkit.Child(benchkit.Ours())
	beSlow()
	redistest.Main(m)
}

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
	ctx := context.Background()
	cycle := func() {
		if err := benchkit.Pair(ctx, c, "floor"); err != nil {
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

// BenchmarkUncontended is one goroutine that takes a lock and gives it back. There is
// nobody to exclude.
func BenchmarkUncontended(b *testing.B) {
	for _, kind := range benchkit.Ours() {
		if kind.Name == "rwlock" {
			continue // its sides have lines of their own
		}
		b.Run(kind.Name, func(b *testing.B) {
			s := redistest.Real(b)
			ctx := context.Background()
			h, err := kind.Open(ctx, benchkit.Env{Addr: s.Addr})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(h.Close)
			cycle, err := h.Worker(ctx, "x")
			if err != nil {
				b.Fatal(err)
			}
			inside := func() {}
			measure(b, s, func() {
				if err := cycle(ctx, kind.Reads == 0, inside); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
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
