package relock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// BenchmarkKeep is what rlock.Keep saves, and what it costs those that want the lock.
func BenchmarkKeep(b *testing.B) {
	b.Run("one name", func(b *testing.B) { keepNames(b, 1) })
	b.Run("1000 names", func(b *testing.B) { keepNames(b, 1000) })
	b.Run("asked back", keepAskedBack)
	b.Run("in turns", keepInTurns)
}

// must ends a benchmark with an error.
func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// once takes a lock and gives it back. It does without must, whose call of Helper takes longer than a kept lock.
func once(b *testing.B, m *rlock.Mutex) {
	_, h, err := m.Lock(context.Background())
	if err == nil {
		err = h.Unlock()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// keepNames is one goroutine that takes one of so many names, at random, beside a lock in memory: a channel with one
// place, which a context can end the wait for.
func keepNames(b *testing.B, n int) {
	s := redistest.Real(b)
	ses := openWith(b, s, rlock.Config{Lease: time.Minute})
	locks := make([]*rlock.Mutex, n)
	for i := range locks {
		locks[i] = rlock.New(ses, fmt.Sprint("account:", i), rlock.Keep(30*time.Second))
		once(b, locks[i])
	}
	measure(b, s, func() { once(b, locks[rand.IntN(n)]) })
	per := b.Elapsed() / time.Duration(b.N)
	place, ctx := make(chan struct{}, 1), b.Context()
	began := time.Now()
	const rounds = 1_000_000
	for range rounds {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
		}
		<-place
	}
	b.ReportMetric(float64(time.Since(began))/rounds/float64(per), "x-memory")
}

// keepAskedBack is for how long a session waits for a lock that another one keeps, by how long for one that another one
// leaves, measured in turns.
func keepAskedBack(b *testing.B) {
	s := redistest.Real(b)
	keeps, wants := openWith(b, s, rlock.Config{}), openWith(b, s, rlock.Config{})
	kept, theirs := rlock.New(keeps, "x", rlock.Keep(10*time.Second)), rlock.New(wants, "x")
	left, next := rlock.New(keeps, "y"), rlock.New(wants, "y")
	ctx := context.Background()
	var back, over []time.Duration
	for b.Loop() {
		once(b, kept)
		once(b, kept) // a lock that was used again is worth keeping
		time.Sleep(idle)
		began := time.Now()
		_, h, err := theirs.Lock(ctx)
		back = append(back, time.Since(began))
		must(b, err)
		must(b, h.Unlock())

		_, h, err = left.Lock(ctx)
		must(b, err)
		got := make(chan time.Time)
		go func() {
			_, h, err := next.Lock(ctx)
			got <- time.Now()
			must(b, err)
			must(b, h.Unlock())
			close(got)
		}()
		time.Sleep(idle)
		began = time.Now()
		must(b, h.Unlock())
		over = append(over, (<-got).Sub(began))
		<-got
	}
	slices.Sort(back)
	slices.Sort(over)
	b.ReportMetric(float64(back[len(back)/2])/float64(over[len(over)/2]), "x-hand-over")
}

// keepInTurns is two sessions that take one name in turns, each when the other has left it: what bounces is not worth
// keeping.
func keepInTurns(b *testing.B) {
	s := redistest.Real(b)
	one, other := openWith(b, s, rlock.Config{}), openWith(b, s, rlock.Config{})
	keep := rlock.Keep(10 * time.Second)
	kept := [2]*rlock.Mutex{rlock.New(one, "x", keep), rlock.New(other, "x", keep)}
	plain := [2]*rlock.Mutex{rlock.New(one, "y"), rlock.New(other, "y")}
	var with, without time.Duration
	turns := func(of [2]*rlock.Mutex) time.Duration {
		began := time.Now()
		for i := range 200 {
			once(b, of[i%2])
		}
		return time.Since(began)
	}
	turns(kept)
	for b.Loop() {
		with += turns(kept)
		without += turns(plain)
	}
	b.ReportMetric(float64(with)/float64(without), "x-without")
}
