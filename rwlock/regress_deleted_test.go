package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The key of a lock was deleted, or evicted, while others waited for it. The Unlock of a side that finds nothing to release
// lets them in, as it would have: they do not wait for their next look.
func TestAnUnlockOfADeletedLockLetsOthersIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		read := func(m *rwlock.RWMutex) lockFunc { return m.RLock }
		write := func(m *rwlock.RWMutex) lockFunc { return m.Lock }
		for what, sides := range map[string][]func(*rwlock.RWMutex) lockFunc{
			"a writer, and a reader waits":                {write, read},
			"a writer, and a reader and a writer wait":    {write, read, write},
			"a writer, and a writer and a reader wait":    {write, write, read},
			"a reader, and a writer waits":                {read, write},
			"a reader, and a writer and a reader wait":    {read, write, read},
			"a reader, and two writers and a reader wait": {read, write, write, read},
		} {
			ctx, name := within(t, 2*time.Minute), redistest.Name(t)
			_, h := hold(t, ctx, sides[0](rwlock.New(dial(t, s, far), name)))
			var waiters []<-chan locked
			for i, side := range sides[1:] {
				waiters = append(waiters, goLock(ctx, side(rwlock.New(dial(t, s, far), name))))
				redistest.Eventually(t, 10*time.Second, "a waiter in the line", func() bool {
					n, err := s.Do(t, "ZCOUNT", "relock_line1:{"+name+"}", "0", "2400000000000000").AsInt64()
					must(t, err)
					m, err := s.Do(t, "ZCOUNT", "relock_line1:{"+name+"}", "8700000000000000", "+inf").AsInt64()
					must(t, err)
					return n+m == int64(i+1)
				})
			}
			busy(ctx, 100*time.Millisecond) // the first of them has asked a second time by then, and listens
			must(t, s.Do(t, "DEL", name).Error())
			is(t, what, h.Unlock(), rlock.ErrLost)
			allGetIn(t, what, waiters)
		}
	})
}

// allGetIn checks that all who wait get in, in any order; each leaves at once.
func allGetIn(t *testing.T, what string, waiters []<-chan locked) {
	t.Helper()
	ends := make(chan error, len(waiters))
	for _, w := range waiters {
		go func() {
			l := <-w
			if l.err == nil {
				l.err = l.hold.Unlock()
			}
			ends <- l.err
		}()
	}
	for range waiters {
		must(t, locktest.Get(t, ends, 10*time.Second, what+": one more to be let in"))
	}
}
