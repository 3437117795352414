package rlock_test

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

// A locker is one side of a lock through one session.
type locker interface {
	Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

type reader struct{ *rwlock.RWMutex }

func (r reader) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return r.RLock(ctx, opts...)
}

// A party holds one lock and waits for another one.
type party struct{ holds, wants locker }

// A ring is a deadlock of parties.
type ring struct {
	t       *testing.T
	parties []party
	holds   []*rlock.Hold
	inside  []context.Context
	results chan ended

	sessions []*rlock.Session // that must know of no wait in the end
}

// ended is how the second Lock of a party ended, and when.
type ended struct {
	i    int
	hold *rlock.Hold
	err  error
	at   time.Time
}

// newRing has each party take its first lock.
func newRing(t *testing.T, ctx context.Context, parties ...party) *ring {
	t.Helper()
	r := &ring{t: t, parties: parties, results: make(chan ended, len(parties))}
	for _, p := range parties {
		section, h, err := p.holds.Lock(ctx)
		must(t, err)
		r.holds, r.inside = append(r.holds, h), append(r.inside, section)
	}
	return r
}

// wait has a party wait for its second lock.
func (r *ring) wait(i int, opts ...rlock.LockOption) {
	go func() {
		_, h, err := r.parties[i].wants.Lock(r.inside[i], opts...)
		r.results <- ended{i, h, err, time.Now()}
	}()
}

// known waits until a session knows of that many waits. The next one is younger then, also on a
// made-up clock, on which two of them can begin in the same microsecond.
func (r *ring) known(ses *rlock.Session, waits int) {
	r.t.Helper()
	redistest.Eventually(r.t, 10*time.Second, "a wait to be watched", func() bool { return ses.Suspects() == waits })
	time.Sleep(time.Millisecond)
}

// resolve waits until one of the parties is told of the deadlock, and unlocks what that holds:
// then the others get their locks. It returns what the victim was told.
func (r *ring) resolve(within time.Duration) ended {
	r.t.Helper()
	victim := locktest.Get(r.t, r.results, within, "the victim")
	locktest.Is(r.t, "the victim", victim.err, rlock.ErrDeadlock, rlock.ErrNotAcquired)
	must(r.t, r.holds[victim.i].Unlock())
	for range len(r.parties) - 1 {
		got := locktest.Get(r.t, r.results, 10*time.Second, "the others' locks")
		if got.err != nil {
			r.t.Errorf("party %d: %v; there was a victim already: %v", got.i, got.err, victim.err)
		} else {
			must(r.t, got.hold.Unlock())
		}
		must(r.t, r.holds[got.i].Unlock())
	}
	for _, ses := range r.sessions {
		if n := ses.Suspects(); n > 0 {
			r.t.Errorf("a session still knows of %d waits", n)
		}
	}
	return victim
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
				r := newRing(t, ctx, party{a, b}, party{b, a})
				r.sessions = append(r.sessions, ses)
				r.wait(0)
				r.known(ses, 1)
				proxy.Reset()
				began := time.Now()
				r.wait(1)
				victim := r.resolve(500*time.Millisecond + s.Slack())
				if victim.i != 1 {
					t.Error("the victim is the one who waited first")
				}
				for _, cmd := range proxy.Log() {
					if strings.Contains(cmd, "deadlock:") {
						t.Errorf("it was sent: %q", cmd)
					}
				}
				t.Logf("after %v: %v", victim.at.Sub(began), victim.err)
			})
		})
	}
}

// acrossSessions are deadlocks of callers in three sessions.
var acrossSessions = map[string]func(s []*rlock.Session) []party{
	"Two": func(s []*rlock.Session) []party {
		return []party{{rlock.New(s[0], "a"), rlock.New(s[0], "b")}, {rlock.New(s[1], "b"), rlock.New(s[1], "a")}}
	},
	"Three": func(s []*rlock.Session) []party {
		return []party{
			{rlock.New(s[0], "a"), rlock.New(s[0], "b")},
			{rlock.New(s[1], "b"), rlock.New(s[1], "c")},
			{rlock.New(s[2], "c"), rlock.New(s[2], "a")},
		}
	},
	"Kinds": func(s []*rlock.Session) []party {
		return []party{
			{fairlock.New(s[0], "a"), rwlock.New(s[0], "b")},
			{reader{rwlock.New(s[1], "b")}, rlock.New(s[1], "c")},
			{rlock.New(s[2], "c"), fairlock.New(s[2], "a")},
		}
	},
	"ReaderWaits": func(s []*rlock.Session) []party {
		return []party{
			{rlock.New(s[0], "a"), reader{rwlock.New(s[0], "b")}},
			{rwlock.New(s[1], "b"), rlock.New(s[1], "a")},
		}
	},
	"PartlyInMemory": func(s []*rlock.Session) []party { // the first two are of one session
		return []party{
			{rlock.New(s[0], "a"), rlock.New(s[0], "b")},
			{rlock.New(s[0], "b"), rlock.New(s[0], "c")},
			{rlock.New(s[1], "c"), rlock.New(s[1], "a")},
		}
	},
	"WithinALockOfAnotherSession": func(s []*rlock.Session) []party { // one caller uses two sessions
		return []party{
			{rlock.New(s[0], "a"), rlock.New(s[1], "b")},
			{rlock.New(s[2], "b"), rlock.New(s[2], "a")},
		}
	},
	"Oneself": func(s []*rlock.Session) []party { // through another session it is another owner
		return []party{{rlock.New(s[0], "a"), rlock.New(s[1], "a")}}
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
				r := newRing(t, ctx, parties(open)...)
				r.sessions = open
				began := time.Now()
				for i := range r.parties {
					r.wait(i)
				}
				victim := r.resolve(3*time.Second + s.Slack())
				took := victim.at.Sub(began)
				t.Logf("after %v: %v", took, victim.err)
				if took < 900*time.Millisecond || took > 2500*time.Millisecond+s.Slack() {
					t.Errorf("the deadlock was found after %v", took)
				}
				for _, p := range []string{`"a" (held by "`, `, "here") waits for `} {
					if !strings.Contains(victim.err.Error(), p) {
						t.Errorf("the text does not say %s: %v", p, victim.err)
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
	s0, s1 := topoDial(t, c.Option(), unpolled()), topoDial(t, c.Option(), unpolled())
	a, b := topoNameOn(t, c, c.Addrs[0]), topoNameOn(t, c, c.Addrs[1])
	r := newRing(t, ctx, party{rlock.New(s0, a), rwlock.New(s0, b)}, party{rwlock.New(s1, b), rlock.New(s1, a)})
	r.sessions = append(r.sessions, s0, s1)
	r.wait(0)
	r.wait(1)
	t.Log(r.resolve(20 * time.Second).err)
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
		r := newRing(t, ctx, party{rlock.New(s0, "x"), rwlock.New(s0, "rw")}, party{reader{rwlock.New(s2, "rw")}, rlock.New(s2, "x")})
		shared := <-first
		r.wait(0)
		r.known(s0, 1)
		r.wait(1)
		victim := locktest.Get(t, r.results, 20*time.Second, "the victim")
		locktest.Is(t, "the victim", victim.err, rlock.ErrDeadlock)
		if victim.i != 1 {
			t.Error("it is the writer, who waited first")
		}
		for _, h := range []*rlock.Hold{r.holds[1], other, shared} {
			must(t, h.Unlock())
		}
		writer := locktest.Get(t, r.results, 20*time.Second, "the writer")
		must(t, writer.err)
		must(t, writer.hold.Unlock())
		must(t, r.holds[0].Unlock())
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
		r := newRing(t, section, party{rlock.New(ses, "a"), rlock.New(ses, "b")}, party{semaphored{ses, "s", rlock.New(ses, "b")}, rlock.New(ses, "a")})
		r.wait(0)
		r.wait(1)
		victim := locktest.Get(t, r.results, 20*time.Second, "the victim")
		locktest.Is(t, "the victim", victim.err, rlock.ErrDeadlock)
		must(t, r.holds[victim.i].Unlock())
		if got := locktest.Get(t, outcomes, 20*time.Second, "the outcome"); got != locktrace.OutcomeDeadlock {
			t.Errorf("the outcome is %q", got)
		}
		if line := locktest.Get(t, logged, 20*time.Second, "a line in the log"); !strings.Contains(line, "relock: deadlock") || !strings.Contains(line, "waits for") {
			t.Errorf("the log says %q", line)
		}
		got := locktest.Get(t, r.results, 20*time.Second, "the other's lock")
		must(t, got.err)
		must(t, got.hold.Unlock())
		must(t, r.holds[got.i].Unlock())
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
	lock locker
}

func (p semaphored) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	section, h, err := p.lock.Lock(ctx, opts...)
	if err == nil {
		section, _, err = semaphore.New(p.s, p.name, 1).Acquire(section, 1)
	}
	return section, h, err
}
