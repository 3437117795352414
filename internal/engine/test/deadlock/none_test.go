package deadlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// noVictim checks that a wait has ended because it was over, not because of a deadlock.
func noVictim(t *testing.T, got locktest.Ended) {
	t.Helper()
	locktest.Is(t, "a wait", got.Err, rlock.ErrNotAcquired)
	if errors.Is(got.Err, rlock.ErrDeadlock) {
		t.Errorf("party %d: %v", got.I, got.Err)
	}
}

// As long as no caller waits longer than a second nothing is sent because of deadlocks, not even
// in one. Callers that wait in no section never cause anything.
func TestDeadlockCostsNothingBefore(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		s0, p0 := locktest.DialProxy(t, s, unpolled())
		s1, p1 := locktest.DialProxy(t, s, unpolled())
		r := locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(s0, "a"), Wants: rlock.New(s0, "b")}, locktest.Party{Holds: rlock.New(s1, "b"), Wants: rlock.New(s1, "a")})
		began, longest := time.Now(), time.Duration(0)
		r.Wait(0, rlock.Wait(400*time.Millisecond))
		r.Wait(1, rlock.Wait(400*time.Millisecond))
		_, _, err := rlock.New(s0, "b").Lock(ctx, rlock.Wait(1500*time.Millisecond)) // in no section
		locktest.Is(t, "a wait in no section", err, rlock.ErrNotAcquired)
		for range 2 {
			got := locktest.Get(t, r.Results, 20*time.Second, "the waits to end")
			noVictim(t, got)
			longest = max(longest, got.At.Sub(began))
		}
		if longest >= time.Second {
			t.Skip("the machine has let them wait for longer than a second; the bubble judges")
		}
		for _, cmd := range append(p0.Log(), p1.Log()...) {
			if strings.Contains(cmd, "deadlock:") || strings.HasPrefix(cmd, "HGETALL") {
				t.Errorf("it was sent: %q", cmd)
			}
		}
		for _, h := range r.Holds {
			must(t, h.Unlock())
		}
	})
}

// A long wait is none, nor is a chain of them, or one that the chase cannot follow: an owner that
// is named, permits, or WithoutOwner.
func TestNoDeadlock(t *testing.T) {
	t.Parallel()
	for name, parties := range map[string]func(ctx context.Context, s []*rlock.Session) []locktest.Party{
		"Chain": func(_ context.Context, s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[0], "b")}, {Holds: fairlock.New(s[1], "b"), Wants: rlock.New(s[1], "c")}, {Holds: rlock.New(s[2], "c"), Wants: rlock.New(s[2], "d")}, {Holds: rlock.New(s[0], "d"), Wants: nil}}
		},
		"Named": func(_ context.Context, s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[0], "b")}, {Holds: named{rlock.New(s[1], "b")}, Wants: rlock.New(s[1], "a")}}
		},
		"Hidden": func(_ context.Context, s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[0], "b")}, {Holds: rlock.New(s[1], "b"), Wants: hidden{rlock.New(s[1], "a")}}}
		},
		"HiddenInMemory": func(_ context.Context, s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[0], "b")}, {Holds: rlock.New(s[0], "b"), Wants: hidden{rlock.New(s[0], "a")}}}
		},
		"Permits": func(_ context.Context, s []*rlock.Session) []locktest.Party { // others may release some
			return []locktest.Party{{Holds: permits{s[0], "a"}, Wants: rlock.New(s[0], "b")}, {Holds: rlock.New(s[1], "b"), Wants: permits{s[1], "a"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				open := []*rlock.Session{dial(t, s, unpolled()), dial(t, s, unpolled()), dial(t, s, unpolled())}
				r := locktest.NewRing(t, ctx, parties(ctx, open)...)
				waiting := 0
				for i, p := range r.Parties {
					if p.Wants != nil {
						r.Wait(i, rlock.Wait(4*time.Second))
						waiting++
					}
				}
				for range waiting {
					noVictim(t, locktest.Get(t, r.Results, 10*time.Second, "the waits to end"))
				}
				for _, h := range r.Holds {
					must(t, h.Unlock())
				}
			})
		})
	}
}

// A Lock that waits on the context of a section that has ended is no reason why what the section
// held stays held, though its claim may be another's by now.
func TestNoDeadlockByAnEndedSection(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses := dial(t, s, rlock.Config{})
		a, b := rlock.New(ses, "a"), rlock.New(ses, "b")
		inB, hb, err := b.Lock(ctx)
		must(t, err)
		inA, ha, err := a.Lock(ctx)
		must(t, err)
		owner := ha.Owner()
		late, next := make(chan error, 1), make(chan *rlock.Hold, 1)
		go func() {
			_, _, err := b.Lock(context.WithoutCancel(inA), rlock.Wait(3*time.Second))
			late <- err
		}()
		go func() {
			_, h, err := a.Lock(ctx)
			if err != nil {
				t.Error(err)
			}
			next <- h
		}()
		redistest.Eventually(t, 5*time.Second, "both to wait", func() bool { return locktest.Suspects(ses) == 1 && locktest.WaitersOf(ses, "a") == 1 })
		locktest.RunFor(ses, "a", time.Second)
		must(t, ha.Unlock())
		h := locktest.Get(t, next, 20*time.Second, "the hand-over")
		if h.Owner() != owner {
			t.Error("it was not handed over")
		}
		_, _, err = a.Lock(inB, rlock.Wait(2*time.Second))
		locktest.Is(t, "a Lock that waits", err, rlock.ErrNotAcquired)
		if errors.Is(err, rlock.ErrDeadlock) {
			t.Error(err)
		}
		must(t, h.Unlock())
		locktest.Is(t, "the other", <-late, rlock.ErrNotAcquired)
		must(t, hb.Unlock())
	})
}

type named struct{ locktest.Locker }

func (n named) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return n.Locker.Lock(rlock.WithOwner(ctx, "me"), opts...)
}

type hidden struct{ locktest.Locker }

func (h hidden) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return h.Locker.Lock(rlock.WithoutOwner(ctx), opts...)
}

type permits struct {
	s    *rlock.Session
	name string
}

func (p permits) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	section, h, err := semaphore.New(p.s, p.name, 1).Acquire(ctx, 1, opts...)
	return section, (*rlock.Hold)(h), err
}

// deadlockMessage matches the messages of one kind: s for seek, h for hint, c for confirm.
func deadlockMessage(kind string) func(cmd []string) bool {
	return func(cmd []string) bool {
		return cmd[0] == "PUBLISH" && strings.HasPrefix(cmd[2], "deadlock:1:"+kind)
	}
}

// A cycle that is confirmed, but dissolves because one of its waits is over while the confirmation
// is on its way for long, has no victim.
func TestDeadlockThatDissolves(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		s0, proxy := locktest.DialProxy(t, s, unpolled())
		s1 := dial(t, s, unpolled())
		r := locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(s0, "a"), Wants: rlock.New(s0, "b")}, locktest.Party{Holds: rlock.New(s1, "b"), Wants: rlock.New(s1, "a")})
		seen, release := proxy.HoldRequest(deadlockMessage("c"))
		defer release()
		leaves, leave := context.WithCancel(r.Inside[0])
		r.Inside[0] = leaves
		r.Wait(0)
		r.Known(s0, 1)
		r.Wait(1)
		locktest.Get(t, seen, 10*time.Second, "the cycle to be confirmed by the session of the first wait")
		time.Sleep(600 * time.Millisecond) // the network's: confirmations count for half a second
		leave()
		got := locktest.Get(t, r.Results, 20*time.Second, "the first wait to end")
		if noVictim(t, got); got.I != 0 || !errors.Is(got.Err, context.Canceled) {
			t.Fatal("the second wait has ended")
		}
		proxy.Reset()
		release()
		redistest.Eventually(t, 5*time.Second, "the confirmation to be sent", func() bool { return proxy.Count("PUBLISH") > 0 })
		select {
		case got := <-r.Results:
			t.Fatalf("the other wait has ended: %v", got.Err)
		case <-time.After(300 * time.Millisecond): // it comes in much less
		}
		must(t, r.Holds[0].Unlock())
		got = locktest.Get(t, r.Results, 20*time.Second, "the other's lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		must(t, r.Holds[1].Unlock())
	})
}

// Messages that come again when the deadlock is resolved, and others wait, end none of those.
func TestDeadlockMessagesAgain(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		var sessions []*rlock.Session
		var heard []<-chan string
		for range 2 {
			ses := dial(t, s, unpolled())
			sessions, heard = append(sessions, ses), append(heard, locktest.Hears(t, s, "relock_session:"+ses.ID()))
		}
		around := func() *locktest.Ring {
			return locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(sessions[0], "a"), Wants: rlock.New(sessions[0], "b")}, locktest.Party{Holds: rlock.New(sessions[1], "b"), Wants: rlock.New(sessions[1], "a")})
		}
		r := around()
		r.Wait(0)
		r.Wait(1)
		r.Resolve(20 * time.Second)
		r = around()
		r.Wait(0, rlock.Wait(900*time.Millisecond)) // the others' search begins later
		r.Wait(1, rlock.Wait(900*time.Millisecond))
		redistest.Eventually(t, 10*time.Second, "both to wait", func() bool { return locktest.Suspects(sessions[0])+locktest.Suspects(sessions[1]) == 2 })
		again := 0
		for i, ses := range sessions {
			for len(heard[i]) > 0 {
				must(t, s.Do(t, "PUBLISH", "relock_session:"+ses.ID(), <-heard[i]).Error())
				again++
			}
		}
		if again < 4 {
			t.Errorf("only %d messages were sent to resolve it", again)
		}
		for range 2 {
			noVictim(t, locktest.Get(t, r.Results, 20*time.Second, "the waits to end"))
		}
		for _, h := range r.Holds {
			must(t, h.Unlock())
		}
	})
}

// A search whose messages are lost is made up for by a later one.
func TestDeadlockSearchIsRepeated(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		s0, p0 := locktest.DialProxy(t, s, unpolled())
		s1, p1 := locktest.DialProxy(t, s, unpolled())
		p0.DropMessages(true)
		p1.DropMessages(true)
		r := locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(s0, "a"), Wants: rlock.New(s0, "b")}, locktest.Party{Holds: rlock.New(s1, "b"), Wants: rlock.New(s1, "a")})
		r.Wait(0)
		r.Wait(1)
		redistest.Eventually(t, 10*time.Second, "both to seek in vain", func() bool { return p0.Count("PUBLISH") > 0 && p1.Count("PUBLISH") > 0 })
		p0.DropMessages(false)
		p1.DropMessages(false)
		r.Resolve(20 * time.Second)
	})
}
