package rwlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// What ends the shared hold ends every reader with ErrLost: the lock is deleted, or flushed,
// or forced from here or elsewhere; and the session shares anew afterwards (R1).
func TestShareIsLostTogether(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		elsewhere := rwlock.New(dial(t, s, slow), "x")
		for _, c := range []struct {
			what  string
			lease time.Duration
			fn    func(m *sharer) error
		}{
			{"deleted", 3 * time.Second, func(*sharer) error { return s.Do(t, "DEL", "x").Error() }},
			{"flushed", 3 * time.Second, func(*sharer) error { return s.Do(t, "FLUSHALL").Error() }},
			{"forced here", time.Hour, func(m *sharer) error { _, err := m.ForceUnlock(ctx); return err }},
			{"forced elsewhere", time.Hour, func(*sharer) error { _, err := elsewhere.ForceUnlock(ctx); return err }},
		} {
			m := newSharer(t, s, rlock.Config{Lease: c.lease})
			all := m.share(t, s, 6)
			must(t, all[0].hold.Unlock())
			_, nested := hold(t, all[1].section, m.RLock)
			must(t, c.fn(m))
			for _, g := range all[1:] {
				ends(t, g.section, 5*time.Second, rlock.ErrLost)
				is(t, c.what+", Unlock", g.hold.Unlock(), rlock.ErrLost)
			}
			is(t, c.what+", Unlock", nested.Unlock(), rlock.ErrLost)
			is(t, c.what+", Unlock", all[0].hold.Unlock(), rlock.ErrNotHeld)
			unlockAll(t, m.share(t, s, 3))
			if got := field(t, s, "x", "mode"); got != "" {
				t.Errorf("%s: the lock is left, mode %q", c.what, got)
			}
			s.FlushAll(t) // the ids of what was lost end with their TTL
		}
	})
}

// The reply to the host's acquire is lost, and then the reply to its release: there is one
// host, nobody is told of a loss, and nothing is left (R8, R9).
func TestShareRepliesLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := newSharer(t, s, slow)
		other := rwlock.New(dial(t, s, slow), "x")
		for range 3 {
			_, w := hold(t, within(t, 30*time.Second), other.Lock)
			var waiting []<-chan locked
			for range 4 {
				waiting = append(waiting, goLock(context.Background(), m.RLock))
			}
			for range waiting {
				locktest.Get(t, m.waiting, 10*time.Second, "the readers to wait")
			}
			redistest.Eventually(t, 10*time.Second, "the look behind the subscription", func() bool {
				line, err := s.Do(t, "ZRANGE", "relock_line1:{x}", "0", "-1").AsStrSlice()
				return err == nil && slices.Contains(line, "l"+m.ses.ID())
			})
			seen, release := m.proxy.HoldReply(calls("acquire_read")) // that of the next look
			must(t, w.Unlock())
			locktest.Get(t, seen, 10*time.Second, "the readers' attempt")
			m.proxy.Cut()
			release()
			var last error
			for i, c := range waiting {
				l := in(t, c, 10*time.Second, "a reader")
				if i == len(waiting)-1 {
					m.proxy.DropReply(calls("release_read"))
				}
				last = l.hold.Unlock()
				must(t, last)
			}
			redistest.Eventually(t, 10*time.Second, "nothing to be held", func() bool { return len(s.Keys(t)) == 0 })
			m.proxy.Reset()
		}
		nothingLeft(t, s)
	})
}

// Close releases the shared hold; who is inside, or comes just then, is told.
func TestShareClose(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		other := rwlock.New(dial(t, s, slow), "x")
		for range 20 {
			m := newSharer(t, s, slow)
			all := m.gather(t, s, 4)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for {
						_, h, err := m.RLock(context.Background())
						if err == nil {
							err = h.Unlock()
						}
						if err != nil {
							if !errors.Is(err, rlock.ErrClosed) {
								t.Errorf("RLock while the session closes: %v", err)
							}
							return
						}
					}
				})
			}
			wg.Go(func() { _ = all[0].hold.Unlock() })
			must(t, m.ses.Close())
			wg.Wait()
			for _, g := range all[1:] {
				ends(t, g.section, s.Slack(), rlock.ErrClosed)
				is(t, "Unlock", g.hold.Unlock(), rlock.ErrClosed)
			}
			_, w := hold(t, within(t, 10*time.Second), other.TryLock)
			must(t, w.Unlock())
		}
		nothingLeft(t, s)
	})
}

// Readers and writers of two sessions, with and without sharing and hand-overs: a writer is
// alone, counted from outside.
func TestShareExclusion(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, limit := range map[string]int{"sharing": 0, "alone": -1} {
			total := locktest.Cycles(t, s, 3000)
			ctx := within(t, 2*time.Minute)
			var inside, done atomic.Int64
			var wg sync.WaitGroup
			for range 2 {
				m := rwlock.New(dial(t, s, rlock.Config{HandOverLimit: limit}), name)
				for g := range 32 {
					wg.Go(func() {
						for n := g; done.Add(1) <= total && !t.Failed(); n++ {
							lock, as := m.RLock, int64(1)
							if n%16 == 0 {
								lock, as = m.Lock, aWriter
							}
							_, h, err := lock(ctx)
							if err != nil {
								t.Error(err)
								return
							}
							if n := inside.Add(as); n > aWriter {
								t.Errorf("inside are %d readers and %d writers", n%aWriter, n/aWriter)
							}
							runtime.Gosched()
							inside.Add(-as)
							if err := h.Unlock(); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
		}
		nothingLeft(t, s) // it waits until nothing is listened to any more
	})
}

// 64 readers of one session that come and go cost far less than two scripts each, and a
// writer of another session gets in before they have come and gone for long: within a bound
// that is counted in readers.
func TestShareCost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := newSharer(t, s, rlock.Config{})
		total := locktest.Cycles(t, s, 20_000)
		var done atomic.Int64
		var wg sync.WaitGroup
		m.proxy.Reset()
		for range 64 {
			wg.Go(func() {
				for done.Add(1) <= total {
					_, h, err := m.RLock(context.Background())
					if err == nil {
						runtime.Gosched()
						err = h.Unlock()
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		got := m.proxy.Count("EVALSHA")
		t.Logf("%d readers: %.3f scripts each", total, float64(got)/float64(total))
		if int64(got) > total/2 {
			t.Errorf("%d readers sent %d scripts", total, got)
		}
		nothingLeft(t, s)
	})
}

// A writer of another session, or of the same, gets in although readers of one session come
// without end, on ever new claims: once the writer waits, few more come in.
func TestShareWriterGetsIn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := newSharer(t, s, rlock.Config{})
		other := rwlock.New(dial(t, s, rlock.Config{}), "x")
		ctx := within(t, 30*time.Second)
		for _, w := range []*rwlock.RWMutex{other, m.RWMutex} {
			readCtx, stop := context.WithCancel(context.Background())
			defer stop()
			var came atomic.Int64
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					for readCtx.Err() == nil {
						_, h, err := m.RLock(readCtx)
						if err != nil {
							continue
						}
						// The reader stays until others have come, if any can, so that the lock is never free.
						n := came.Add(1)
						for i := 0; i < 10_000 && came.Load() < n+2; i++ {
							runtime.Gosched()
						}
						if err := h.Unlock(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for round := range 5 {
				begin := came.Load()
				redistest.Eventually(t, 10*time.Second, "readers to come", func() bool { return came.Load() > begin })
				before := came.Load()
				_, h := hold(t, ctx, w.Lock)
				n := came.Load() - before
				t.Logf("round %d: %d readers came while the writer waited", round, n)
				if n > 50_000 {
					t.Errorf("%d readers came while the writer waited", n)
				}
				must(t, h.Unlock())
			}
			stop()
			wg.Wait()
		}
		nothingLeft(t, s)
	})
}
