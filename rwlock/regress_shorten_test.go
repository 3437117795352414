package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// What one session shortens must not reach what another holds under the same owner.
func TestShorteningSparesOthers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 60*time.Second), "me")
		score := func() time.Duration {
			f, err := s.Do(t, "ZSCORE", "relock_readers:{x}", "me").AsFloat64()
			if err != nil {
				return 0
			}
			return time.Until(time.UnixMilli(int64(f)))
		}
		stands := func(what string, r *rlock.Hold) {
			t.Helper()
			if got := pttl(t, s, "x"); got < r.Remaining() {
				t.Errorf("%s: the lock lives %v, the other session trusts it for %v", what, got, r.Remaining())
			}
			if got := score(); got > 0 && got < r.Remaining() {
				t.Errorf("%s: the reader lives %v, the other session trusts it for %v", what, got, r.Remaining())
			}
		}
		for _, lock := range []func(*rwlock.RWMutex) lockFunc{
			func(m *rwlock.RWMutex) lockFunc { return m.RLock }, func(m *rwlock.RWMutex) lockFunc { return m.Lock }} {
			_, other := hold(t, ctx, lock(b), rlock.Lease(time.Minute))
			_, h1 := hold(t, ctx, lock(a), rlock.Lease(15*time.Second))
			_, h2 := hold(t, ctx, lock(a), rlock.Lease(15*time.Second))
			must(t, h2.Unlock())
			stands("unlock", other)
			must(t, h1.Extend(ctx, 10*time.Second))
			stands("extend", other)
			must(t, h1.Unlock())
			stands("last unlock", other)
			must(t, other.Unlock())
			s.FlushAll(t)
		}
		// A read hold of another session under a write side that is cut.
		_, w := hold(t, ctx, a.Lock, rlock.Lease(15*time.Second))
		_, r := hold(t, ctx, b.RLock, rlock.Lease(time.Minute))
		must(t, w.Extend(ctx, 10*time.Second))
		stands("extend of a write side", r)
		must(t, w.Unlock())
		stands("downgrade", r)
		must(t, r.Unlock())
	})
}

// Nor must it reach what Redisson's readers hold, and a timeout key does not outlive what is left.
func TestShorteningSparesRedissonsReaders(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a := rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 60*time.Second), "me")
		j := newJava(t, s, "x", 7)
		j.wants(javaReadLock, 30*time.Second, "nil")
		_, r1 := hold(t, ctx, a.RLock, rlock.Lease(15*time.Second))
		_, r2 := hold(t, ctx, a.RLock, rlock.Lease(15*time.Second))
		must(t, r2.Unlock())
		must(t, r1.Extend(ctx, 10*time.Second))
		if got := pttl(t, s, "x"); got < 25*time.Second {
			t.Errorf("Redisson's lease of 30s is cut to %v", got)
		}
		must(t, r1.Unlock())
		s.FlushAll(t)
		// A timeout key does not outlive what is left.
		_, r1 = hold(t, ctx, a.RLock, rlock.Lease(time.Minute))
		_, r2 = hold(t, ctx, a.RLock, rlock.Lease(15*time.Second))
		must(t, r1.Unlock())
		if got := pttl(t, s, "{x}:me:rwlock_timeout:1"); got > 15*time.Second+rounding {
			t.Errorf("the timeout key lives for %v, the hold for 15s", got)
		}
		must(t, r2.Unlock())
	})
}

// Of a writer that has read and written with a long lease meanwhile the lock lives no longer than the read hold that is
// left, and that hold's timeout key neither: a process that crashes now keeps nobody out for that lease.
func TestADowngradeCutsALongLeaseThatIsUnlocked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const lease = 30 * time.Second // as by default
		ctx, m := rlock.WithOwner(within(t, 60*time.Second), "me"), rwlock.New(dial(t, s, slow), "x")
		section, w := hold(t, ctx, m.Lock)
		_, r := hold(t, section, m.RLock)
		_, long := hold(t, section, m.Lock, rlock.Lease(5*lease))
		must(t, w.Unlock())
		must(t, long.Unlock())
		for _, key := range []string{"x", "{x}:me:rwlock_timeout:1"} {
			if got := pttl(t, s, key); got > lease+rounding || got < r.Remaining() {
				t.Errorf("%s lives for %v, the hold that is left asks for %v, and trusts %v of it", key, got, lease, r.Remaining())
			}
		}
		must(t, r.Unlock())
	})
}

// The same when the other session holds in a later life of the lock, and the one that
// shortens has not noticed that its own holds are gone: their number is right, but they are
// not those that are counted.
func TestALostHoldDoesNotCutTheOwnersNextLife(t *testing.T) {
	type side = func(*rwlock.RWMutex) lockFunc
	read := func(m *rwlock.RWMutex) lockFunc { return m.RLock }
	write := func(m *rwlock.RWMutex) lockFunc { return m.Lock }
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sa, sb := dial(t, s, slow), dial(t, s, slow)
		for _, c := range []struct {
			name        string
			side, again side // what is lost and held elsewhere; what is taken in the new life
		}{
			{"read", read, nil}, {"write", write, nil},
			{"read twice", read, read}, {"write twice", write, write}, {"write and read", write, read},
		} {
			for _, extend := range []bool{true, false} {
				if !extend && c.again == nil {
					continue
				}
				name := c.name + map[bool]string{true: ", extend", false: ", unlock"}[extend]
				t.Run(name, func(t *testing.T) {
					a, b := rwlock.New(sa, name), rwlock.New(sb, name)
					ctx := rlock.WithOwner(within(t, 20*time.Second), "me")
					section, gone := hold(t, ctx, c.side(a), rlock.Lease(15*time.Second))
					must(t, s.Do(t, "DEL", name).Error())
					_, there := hold(t, ctx, c.side(b), rlock.Lease(time.Minute))
					var again *rlock.Hold
					if c.again != nil {
						_, again = hold(t, section, c.again(a), rlock.Lease(15*time.Second))
					}
					switch err := error(nil); {
					case !extend:
						must(t, again.Unlock())
					default:
						if err = gone.Extend(ctx, 10*time.Second); again == nil {
							is(t, "Extend of what was lost", err, rlock.ErrLost)
						}
					}
					left := there.Remaining()
					if got := pttl(t, s, name); got < left {
						t.Errorf("the lock lives %v, the session that holds it trusts it for %v", got, left)
					}
					f, err := s.Do(t, "ZSCORE", "relock_readers:{"+name+"}", "me").AsFloat64()
					if until := time.Until(time.UnixMilli(int64(f))); err == nil && until < left && c.name != "write and read" {
						t.Errorf("the reader lives %v, the session that holds it trusts it for %v", until, left)
					}
					must(t, there.Unlock())
				})
			}
		}
	})
}
