package rwlock_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// livesOn checks that the lock x lives about as long as a Java reader whose lease was 20 s.
func livesOn(t *testing.T, s *redistest.Server) {
	t.Helper()
	if got := pttl(t, s, "x"); got < 10*time.Second {
		t.Errorf("the lock lives for %v, Java's reader for 20 s", got)
	}
}

// A Java reader who came behind two Go readers of its owner has the third timeout key. It stays in when they have left,
// though fewer holds are counted then than keys stand.
func TestJavaReaderOutlivesTwoGoReadersOfItsOwner(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("dies %t", dies), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				lease := s.Slowed(300 * time.Millisecond)
				m, w := rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x"), rwlock.New(dial(t, s, slow), "x")
				ctx := within(t, 30*time.Second)
				j := newJava(t, s, "x", 7)
				me := rlock.WithOwner(ctx, j.owner)
				_, first := hold(t, me, m.RLock)
				_, second := hold(t, me, m.RLock)
				j.wants(javaReadLock, 20*time.Second, "nil")
				must(t, first.Unlock())
				if dies {
					second.Abandon()
				} else {
					must(t, second.Unlock())
				}
				time.Sleep(lease + lease/2)
				refused(t, ctx, w.TryLock, "a writer of ours beside a Java reader")
				livesOn(t, s)
			})
		})
	}
}

// A Java reader under a Go writer of its owner has the second timeout key, behind a Go reader who dies. It stays in when the
// writer leaves.
func TestJavaReaderOutlivesAGoWriterOfItsOwner(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(300 * time.Millisecond)
		m, w := rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		j := newJava(t, s, "x", 7)
		me := rlock.WithOwner(ctx, j.owner)
		_, writer := hold(t, me, w.Lock)
		_, reader := hold(t, me, m.RLock)
		j.wants(javaReadLock, 20*time.Second, "nil")
		reader.Abandon()
		time.Sleep(lease + lease/2)
		must(t, writer.Unlock())
		refused(t, ctx, w.TryLock, "a writer of ours beside a Java reader")
		livesOn(t, s)
	})
}

// A Java reader renews its timeout keys and the lock's TTL every third of its lease. So what Go makes shorter beside it leaves
// the lock for as long as its timeout keys say, for the Go service that shares its owner may die.
func TestTheLockLivesAsLongAsAJavaReader(t *testing.T) {
	type parties struct {
		me, others *rwlock.RWMutex // the former's leases are short
		j          java
	}
	for name, act := range map[string]func(t *testing.T, p *parties, lease time.Duration){
		"another reader leaves": func(t *testing.T, p *parties, lease time.Duration) {
			ctx := within(t, 30*time.Second)
			_, other := hold(t, ctx, p.others.RLock)
			_, mine := hold(t, rlock.WithOwner(ctx, p.j.owner), p.me.RLock)
			p.j.wants(javaReadLock, 20*time.Second, "nil")
			mine.Abandon()
			must(t, other.Unlock())
		},
		"another reader's end moves": func(t *testing.T, p *parties, lease time.Duration) {
			ctx := within(t, 30*time.Second)
			_, other := hold(t, ctx, p.others.RLock, rlock.Lease(20*time.Second))
			_, mine := hold(t, rlock.WithOwner(ctx, p.j.owner), p.me.RLock)
			p.j.wants(javaReadLock, 20*time.Second, "nil")
			mine.Abandon()
			must(t, other.Extend(ctx, lease))
		},
		"a writer leaves": func(t *testing.T, p *parties, lease time.Duration) {
			me := rlock.WithOwner(within(t, 30*time.Second), p.j.owner)
			_, writer := hold(t, me, p.others.Lock)
			_, mine := hold(t, me, p.me.RLock)
			p.j.wants(javaReadLock, 20*time.Second, "nil")
			mine.Abandon()
			must(t, writer.Unlock())
		},
		"an inner writer leaves": func(t *testing.T, p *parties, lease time.Duration) {
			me := rlock.WithOwner(within(t, 30*time.Second), p.j.owner)
			section, _ := hold(t, me, p.me.Lock, rlock.Lease(lease))
			_, inner := hold(t, section, p.me.Lock, rlock.Lease(2*lease))
			p.j.wants(javaReadLock, 20*time.Second, "nil")
			must(t, inner.Unlock())
		},
		"a writer's end moves": func(t *testing.T, p *parties, lease time.Duration) {
			me := rlock.WithOwner(within(t, 30*time.Second), p.j.owner)
			_, writer := hold(t, me, p.me.Lock, rlock.Lease(20*time.Second))
			p.j.wants(javaReadLock, 20*time.Second, "nil")
			must(t, writer.Extend(me, lease))
		},
		"a writer leaves the lock standing": func(t *testing.T, p *parties, lease time.Duration) {
			me := rlock.WithOwner(within(t, 30*time.Second), p.j.owner)
			_, writer := hold(t, me, p.others.Lock, rlock.AtLeast(lease))
			p.j.wants(javaReadLock, 20*time.Second, "nil")
			must(t, writer.Unlock())
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				lease := s.Slowed(300 * time.Millisecond)
				p := parties{rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x"), rwlock.New(dial(t, s, slow), "x"), newJava(t, s, "x", 7)}
				act(t, &p, lease)
				livesOn(t, s)
			})
		})
	}
}

// A renewal that comes behind the release of the only Go reader of a Java reader's owner leaves the latter its timeout key.
func TestLateRenewalSparesAJavaReader(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		j := newJava(t, s, "x", 7)
		me := rlock.WithOwner(within(t, 30*time.Second), j.owner)
		_, mine := hold(t, me, m.RLock)
		j.wants(javaReadLock, time.Minute, "nil")
		must(t, mine.Unlock())
		s.Do(t, "EVAL", rwlock.ScriptSources()["renew"], "4", "x", "relock_readers:{x}", "relock_rw_holds:{x}:"+j.owner,
			"{x}:"+j.owner+":rwlock_timeout:1", "300", "s4:"+j.owner)
		if got := pttl(t, s, "{x}:"+j.owner+":rwlock_timeout:1"); got < 50*time.Second {
			t.Errorf("Java's timeout key lives for %v, want a minute", got)
		}
	})
}

// State names a Java reader whose owner a Go service has shared that died, beside a reader who lives on.
func TestStateNamesAJavaReaderOfASharedOwner(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(300 * time.Millisecond)
		m, other := rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		j := newJava(t, s, "x", 7)
		hold(t, ctx, other.RLock)
		_, mine := hold(t, rlock.WithOwner(ctx, j.owner), m.RLock)
		j.wants(javaReadLock, 20*time.Second, "nil")
		mine.Abandon()
		time.Sleep(lease + lease/2)
		if st, err := other.State(ctx); err != nil || st.Owners[j.owner] == 0 {
			t.Errorf("the state is %+v, %v; want Java's reader too", st, err)
		}
	})
}
