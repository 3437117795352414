package relock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// BenchmarkBuffers is what the small buffers of Dial's own client cost: the cycles a second of so many goroutines, each
// with a name of its own, by those of a session with rueidis's default buffers, measured in turns.
func BenchmarkBuffers(b *testing.B) {
	for _, n := range []int{64, 512} {
		b.Run(fmt.Sprint(n, " goroutines"), func(b *testing.B) {
			s := redistest.Real(b)
			small := rueidis.ClientOption{InitAddress: []string{s.Addr}}
			large := small
			large.ReadBufferEachConn, large.WriteBufferEachConn = rueidis.DefaultReadBuffer, rueidis.DefaultWriteBuffer
			sessions := [2]*rlock.Session{dialWith(b, small), dialWith(b, large)}
			var cycles [2]int64
			var took [2]time.Duration
			for _, ses := range sessions {
				inAll(b, ses, n, 100*time.Millisecond)
			}
			b.ResetTimer()
			for i := range b.N {
				for k := range sessions {
					at := (i + k) % 2 // neither is always the first
					began := time.Now()
					cycles[at] += inAll(b, sessions[at], n, 250*time.Millisecond)
					took[at] += time.Since(began)
				}
			}
			rate := func(i int) float64 { return float64(cycles[i]) / took[i].Seconds() }
			b.ReportMetric(rate(0), "small/s")
			b.ReportMetric(rate(0)/rate(1), "x-large")
		})
	}
}

// dialWith opens a session for the time of the benchmark.
func dialWith(b *testing.B, opt rueidis.ClientOption) *rlock.Session {
	ses, err := rlock.Dial(context.Background(), opt, rlock.Config{})
	must(b, err)
	b.Cleanup(func() { must(b, ses.Close()) })
	return ses
}

// inAll has n goroutines lock and unlock names of their own for d, and returns how often they did.
func inAll(b *testing.B, ses *rlock.Session, n int, d time.Duration) int64 {
	var done atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for i := range n {
		wg.Go(func() {
			m := rlock.New(ses, fmt.Sprint("own:", i))
			for time.Now().Before(end) {
				_, h, err := m.Lock(context.Background())
				if err == nil {
					err = h.Unlock()
				}
				if err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return done.Load()
}
