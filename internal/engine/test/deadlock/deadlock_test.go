package deadlock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

type reader struct{ *rwlock.RWMutex }

func (r reader) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return r.RLock(ctx, opts...)
}

// unpolled is a configuration in which polling comes to nobody's help.
func unpolled() rlock.Config {
	return rlock.Config{PollFloor: time.Minute, HandOverLimit: -1, Label: "here"}
}

// Two callers of one session that wait for each other are told at once, when the second begins to
// wait; without a message, and in a session that polls too.
func TestDeadlockWithinASession(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]rlock.Config{"listens": unpolled(), "polls": {Polling: rlock.Linear(time.Millisecond)}} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, 20*time.Second)
				ses, proxy := locktest.DialProxy(t, s, cfg)
				a, b := rlock.New(ses, "a"), fairlock.New(ses, "b")
				r := locktest.NewRing(t, ctx, locktest.Party{Holds: a, Wants: b}, locktest.Party{Holds: b, Wants: a})
				r.Sessions = append(r.Sessions, ses)
				r.Wait(0)
				r.Known(ses, 1)
				proxy.Reset()
				began := time.Now()
				r.Wait(1)
				victim := r.Resolve(500*time.Millisecond + s.Slack())
				if victim.I != 1 {
					t.Error("the victim is the one who waited first")
				}
				for _, cmd := range proxy.Log() {
					if strings.Contains(cmd, "deadlock:") {
						t.Errorf("it was sent: %q", cmd)
					}
				}
				t.Logf("after %v: %v", victim.At.Sub(began), victim.Err)
			})
		})
	}
}

// acrossSessions are deadlocks of callers in three sessions.
var acrossSessions = map[string]func(s []*rlock.Session) []locktest.Party{
	"Two": func(s []*rlock.Session) []locktest.Party {
		return []locktest.Party{{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[0], "b")}, {Holds: rlock.New(s[1], "b"), Wants: rlock.New(s[1], "a")}}
	},
	"Three": func(s []*rlock.Session) []locktest.Party {
		return []locktest.Party{
			{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[0], "b")},
			{Holds: rlock.New(s[1], "b"), Wants: rlock.New(s[1], "c")},
			{Holds: rlock.New(s[2], "c"), Wants: rlock.New(s[2], "a")},
		}
	},
	"Kinds": func(s []*rlock.Session) []locktest.Party {
		return []locktest.Party{
			{Holds: fairlock.New(s[0], "a"), Wants: rwlock.New(s[0], "b")},
			{Holds: reader{rwlock.New(s[1], "b")}, Wants: rlock.New(s[1], "c")},
			{Holds: rlock.New(s[2], "c"), Wants: fairlock.New(s[2], "a")},
		}
	},
	"ReaderWaits": func(s []*rlock.Session) []locktest.Party {
		return []locktest.Party{
			{Holds: rlock.New(s[0], "a"), Wants: reader{rwlock.New(s[0], "b")}},
			{Holds: rwlock.New(s[1], "b"), Wants: rlock.New(s[1], "a")},
		}
	},
	"PartlyInMemory": func(s []*rlock.Session) []locktest.Party { // the first two are of one session
		return []locktest.Party{
			{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[0], "b")},
			{Holds: rlock.New(s[0], "b"), Wants: rlock.New(s[0], "c")},
			{Holds: rlock.New(s[1], "c"), Wants: rlock.New(s[1], "a")},
		}
	},
	"WithinALockOfAnotherSession": func(s []*rlock.Session) []locktest.Party { // one caller uses two sessions
		return []locktest.Party{
			{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[1], "b")},
			{Holds: rlock.New(s[2], "b"), Wants: rlock.New(s[2], "a")},
		}
	},
	"Oneself": func(s []*rlock.Session) []locktest.Party { // through another session it is another owner
		return []locktest.Party{{Holds: rlock.New(s[0], "a"), Wants: rlock.New(s[1], "a")}}
	},
}

// Cycles across sessions, of all kinds of lock, end about a second after they have begun.
func TestDeadlockAcrossSessions(t *testing.T) {
	t.Parallel()
	for name, parties := range acrossSessions {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				var open []*rlock.Session
				for range 3 {
					open = append(open, dial(t, s, unpolled()))
				}
				r := locktest.NewRing(t, ctx, parties(open)...)
				r.Sessions = open
				began := time.Now()
				for i := range r.Parties {
					r.Wait(i)
				}
				victim := r.Resolve(3*time.Second + s.Slack())
				took := victim.At.Sub(began)
				t.Logf("after %v: %v", took, victim.Err)
				if took < 900*time.Millisecond || took > 2500*time.Millisecond+s.Slack() {
					t.Errorf("the deadlock was found after %v", took)
				}
				for _, p := range []string{`"a" (held by "`, `, "here") waits for `} {
					if !strings.Contains(victim.Err.Error(), p) {
						t.Errorf("the text does not say %s: %v", p, victim.Err)
					}
				}
			})
		})
	}
}

// In a Cluster the locks and the sessions' channels are on different nodes.
func TestDeadlockInACluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	ctx := within(t, time.Minute)
	s0, s1 := locktest.DialOption(t, c.Option(), unpolled()), locktest.DialOption(t, c.Option(), unpolled())
	a, b := locktest.NameOn(t, c, c.Addrs[0]), locktest.NameOn(t, c, c.Addrs[1])
	r := locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(s0, a), Wants: rwlock.New(s0, b)}, locktest.Party{Holds: rwlock.New(s1, b), Wants: rlock.New(s1, a)})
	r.Sessions = append(r.Sessions, s0, s1)
	r.Wait(0)
	r.Wait(1)
	t.Log(r.Resolve(20 * time.Second).Err)
}

// A writer waits for two readers, of whom one waits for the writer: the other one's being at work
// changes nothing. A section that readers share keeps the writer out until all have left.
func TestDeadlockWithReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		s0, s1, s2 := dial(t, s, unpolled()), dial(t, s, unpolled()), dial(t, s, rlock.Config{})
		_, other, err := rwlock.New(s1, "rw").RLock(ctx)
		must(t, err)
		first := make(chan *rlock.Hold, 1)
		go func() { // may be shared with that of the ring
			_, h, err := rwlock.New(s2, "rw").RLock(ctx)
			if err != nil {
				t.Error(err)
			}
			first <- h
		}()
		r := locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(s0, "x"), Wants: rwlock.New(s0, "rw")}, locktest.Party{Holds: reader{rwlock.New(s2, "rw")}, Wants: rlock.New(s2, "x")})
		shared := <-first
		r.Wait(0)
		r.Known(s0, 1)
		r.Wait(1)
		victim := locktest.Get(t, r.Results, 20*time.Second, "the victim")
		locktest.Is(t, "the victim", victim.Err, rlock.ErrDeadlock)
		if victim.I != 1 {
			t.Error("it is the writer, who waited first")
		}
		for _, h := range []*rlock.Hold{r.Holds[1], other, shared} {
			must(t, h.Unlock())
		}
		writer := locktest.Get(t, r.Results, 20*time.Second, "the writer")
		must(t, writer.Err)
		must(t, writer.Hold.Unlock())
		must(t, r.Holds[0].Unlock())
	})
}

// Hooks are told of the outcome, and the Logger of the cycle.
func TestDeadlockIsTold(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		outcomes := make(chan locktrace.Outcome, 10)
		logged := make(lines, 10)
		cfg := unpolled()
		cfg.Logger = slog.New(slog.NewTextHandler(logged, nil))
		cfg.Trace = &rlock.Trace{AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) {
			if e.Err != nil {
				outcomes <- e.Outcome
			}
		}}
		ses := dial(t, s, cfg)
		section, h, err := fairlock.New(ses, "x").Lock(ctx)
		must(t, err)
		r := locktest.NewRing(t, section, locktest.Party{Holds: rlock.New(ses, "a"), Wants: rlock.New(ses, "b")}, locktest.Party{Holds: semaphored{ses, "s", rlock.New(ses, "b")}, Wants: rlock.New(ses, "a")})
		r.Wait(0)
		r.Wait(1)
		victim := locktest.Get(t, r.Results, 20*time.Second, "the victim")
		locktest.Is(t, "the victim", victim.Err, rlock.ErrDeadlock)
		must(t, r.Holds[victim.I].Unlock())
		if got := locktest.Get(t, outcomes, 20*time.Second, "the outcome"); got != locktrace.OutcomeDeadlock {
			t.Errorf("the outcome is %q", got)
		}
		if line := locktest.Get(t, logged, 20*time.Second, "a line in the log"); !strings.Contains(line, "relock: deadlock") || !strings.Contains(line, "waits for") {
			t.Errorf("the log says %q", line)
		}
		got := locktest.Get(t, r.Results, 20*time.Second, "the other's lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		must(t, r.Holds[got.I].Unlock())
		must(t, h.Unlock())
	})
}

// lines receives what a Logger writes.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// A semaphored lock is taken, and permits on its section: those change nothing about the lock.
type semaphored struct {
	s    *rlock.Session
	name string
	lock locktest.Locker
}

func (p semaphored) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	section, h, err := p.lock.Lock(ctx, opts...)
	if err == nil {
		section, _, err = semaphore.New(p.s, p.name, 1).Acquire(section, 1)
	}
	return section, h, err
}
