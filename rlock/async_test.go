package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A warnings is a slog.Handler that keeps what it is told.
type warnings struct {
	mu    sync.Mutex
	lines []string
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) WithGroup(string) slog.Handler            { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	return nil
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// settled waits until the session has to do with no lock any more.
func settled(t *testing.T, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, time.Minute, "nothing to be left of any call", func() bool {
		held, asking, locks, scheduled, active := ses.Books()
		return held+asking+locks+scheduled+active == 0
	})
}

// Cycles with UnlockAsync send what cycles with Unlock do, in the same order: never an attempt before the release
// of the hold before.
func TestUnlockAsyncSendsTheSameCommands(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		ctx, m := within(t, time.Minute), rlock.New(ses, "x")
		acquires, releases := faultRuns(t, "acquire"), faultRuns(t, "release")
		const n = 300
		for range n {
			section, h, err := m.Lock(ctx)
			must(t, err)
			h.UnlockAsync()
			if !errors.Is(context.Cause(section), rlock.ErrReleased) {
				t.Fatalf("the section goes on: %v", context.Cause(section))
			}
		}
		settled(t, ses)
		order := ""
		for _, cmd := range p.Sent() {
			switch {
			case acquires(cmd):
				order += "A"
			case releases(cmd):
				order += "R"
			}
		}
		if want := strings.Repeat("AR", n); order != want {
			t.Errorf("%d commands in the order %.40s…, want %d as ARAR…", len(order), order, 2*n)
		}
	})
}

// UnlockAsync returns before Redis has heard of it. A Lock of the session waits then as for any Unlock that is under
// way, and sends nothing before.
func TestUnlockAsyncDoesNotWait(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		section, h := st.lock(st.ctx)
		seen, release := st.p.HoldRequest(faultRuns(t, "release"))
		defer release()
		h.UnlockAsync()
		locktest.Ends(t, section, time.Second, rlock.ErrReleased)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrNotHeld)
		locktest.Get(t, seen, 5*time.Second, "the release")
		if faultFree(t, s, st.name) {
			t.Fatal("free before the release has arrived")
		}
		asked := faultSent(t, st.p, "acquire")
		next := st.queue(st.ctx)
		if now := faultSent(t, st.p, "acquire"); now != asked {
			t.Errorf("the next Lock has sent %d attempts before the release was answered", now-asked)
		}
		release()
		must(t, st.in(next).hold.Unlock())
		if n := faultSent(t, st.p, "release"); n != 2 {
			t.Errorf("%d releases, want 2", n)
		}
	})
}

// A busy is a session whose background has as many releases on their way as it sends at a time, none of which is
// answered until free is called: one more stays with the session until an attempt takes it along.
func busy(t *testing.T, st *stage) (free func()) {
	t.Helper()
	var holds []*rlock.Hold
	for i := range 4 {
		_, h, err := rlock.New(st.ses, fmt.Sprint(st.name, " busy ", i)).Lock(st.ctx)
		must(t, err)
		holds = append(holds, h)
	}
	before := faultSent(t, st.p, "release")
	_, free = st.p.HoldReply(faultRuns(t, "release"))
	t.Cleanup(free)
	for i, h := range holds {
		h.UnlockAsync()
		redistest.Eventually(t, 10*time.Second, "a release to leave", func() bool { return faultSent(t, st.p, "release") == before+i+1 })
	}
	return free
}

// An attempt takes the release along that has not left yet: one pipeline, the release first.
func TestUnlockAsyncGoesWithTheNextAttempt(t *testing.T) {
	for _, try := range []bool{false, true} {
		t.Run(fmt.Sprintf("try %v", try), func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				st := newStage(t, s, rlock.Config{})
				_, h := st.lock(st.ctx)
				free := busy(t, st)
				before := faultSent(t, st.p, "release")
				h.UnlockAsync()
				lock := st.m.Lock
				if try {
					lock = st.m.TryLock
				}
				got := make(chan faultLocked, 1)
				go func() {
					section, next, err := lock(st.ctx)
					got <- faultLocked{section, next, err, time.Now()}
				}()
				redistest.Eventually(t, 10*time.Second, "release and attempt", func() bool {
					return faultSent(t, st.p, "release") == before+1 && faultCount(t, s, st.name, h.Owner()) == "" && !faultFree(t, s, st.name)
				})
				free()
				g := locktest.Get(t, got, 10*time.Second, "the lock")
				must(t, g.err)
				must(t, g.hold.Unlock())
				settled(t, st.ses)
			})
		})
	}
}

// What takes the release along may end before it is sent or answered: the release goes on.
func TestUnlockAsyncOutlivesWhatTakesItAlong(t *testing.T) {
	for how, end := range map[string]func(*stage) (ctx context.Context, then func()){
		"cancelled on its way": func(st *stage) (context.Context, func()) { return context.WithCancel(st.ctx) },
		"a context that panics": func(st *stage) (context.Context, func()) {
			return &panics{Context: st.ctx}, func() {}
		},
	} {
		t.Run(how, func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				st := newStage(t, s, rlock.Config{})
				_, h := st.lock(st.ctx)
				free := busy(t, st)
				before := faultSent(t, st.p, "release")
				h.UnlockAsync()
				ctx, then := end(st)
				over := make(chan struct{})
				go func() {
					defer close(over)
					returns(func() {
						if _, next, err := st.m.TryLock(ctx); err == nil {
							_ = next.Unlock()
						}
					})
				}()
				if _, bad := ctx.(*panics); !bad {
					redistest.Eventually(t, 10*time.Second, "the release", func() bool { return faultSent(t, st.p, "release") == before+1 })
				} else {
					locktest.Get(t, over, 10*time.Second, "the panic")
				}
				then()
				locktest.Get(t, over, 10*time.Second, "the end of TryLock")
				free()
				redistest.Eventually(t, 10*time.Second, "the lock to be free", func() bool { return faultFree(t, s, st.name) })
			})
		})
	}
}

// A panics is a context whose Done panics once an attempt is about to be sent.
type panics struct{ context.Context }

func (c *panics) Done() <-chan struct{} { panic("on purpose") }

// What Unlock would return goes to the Logger and the hooks.
func TestUnlockAsyncTellsOfALoss(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var logged warnings
		tr := newTracing(t, s, rlock.Config{Logger: slog.New(&logged)})
		m := rlock.New(tr.ses, "x")
		_, h, err := m.Lock(tr.ctx)
		must(t, err)
		s.Do(t, "DEL", "x")
		h.UnlockAsync()
		tr.told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x",
			"release mutex", "released "+rlock.ErrLost.Error(), "lost mutex")
		if n := tr.ledger.Count("lost"); n != 1 {
			t.Errorf("%d losses were told", n)
		}
		if got := logged.all(); !strings.Contains(got, "lock lost") || strings.Count(got, "\n") != 0 {
			t.Errorf("the Logger heard %q", got)
		}
		h.UnlockAsync()
		redistest.Eventually(t, 5*time.Second, "the Logger to hear of the second call", func() bool {
			return strings.Contains(logged.all(), rlock.ErrNotHeld.Error())
		})
		tr.closed()
	})
}

func TestUnlockAsyncTraced(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := newTracing(t, s, rlock.Config{})
		m := rlock.New(tr.ses, "x")
		section, h, err := m.Lock(tr.ctx)
		must(t, err)
		_, in, err := m.TryLock(section)
		must(t, err)
		in.UnlockAsync()
		tr.told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x",
			"acquire mutex x try true", "acquired mutex redis nested true", "hold mutex x",
			"release mutex", "released <nil>", "released mutex")
		h.UnlockAsync()
		tr.told("release mutex", "released <nil>", "released mutex")
		tr.closed()
	})
}

func TestUnlockAsyncOfNothing(t *testing.T) {
	var none *rlock.Hold
	none.UnlockAsync()
	new(rlock.Hold).UnlockAsync()
}

// Hand-over in memory sends nothing, as that of Unlock.
func TestUnlockAsyncHandsOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		_, h := st.lock(st.ctx)
		next := st.queue(st.ctx)
		st.p.Reset()
		h.UnlockAsync()
		got := st.in(next)
		if n := len(st.p.Sent()); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
		if got.hold.Owner() != h.Owner() {
			t.Errorf("the lock went through Redis")
		}
		got.hold.UnlockAsync()
		settled(t, st.ses)
	})
}

// Of Do it is an option, of no other call.
func TestAsyncRelease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		ctx, m := within(t, time.Minute), rlock.New(ses, "x")
		_, _, err := m.Lock(ctx, rlock.AsyncRelease())
		locktest.Is(t, "Lock", err, rlock.ErrArgument)
		_, _, err = m.TryLock(ctx, rlock.AsyncRelease())
		locktest.Is(t, "TryLock", err, rlock.ErrArgument)
		if n := len(p.Sent()); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
		seen, release := p.HoldRequest(faultRuns(t, "release"))
		defer release()
		of := errors.New("of fn")
		err = m.Do(ctx, func(context.Context) error { return of }, rlock.AsyncRelease())
		if err != of {
			t.Errorf("Do: %v, want fn's error", err)
		}
		locktest.Get(t, seen, 5*time.Second, "the release")
		release()
		settled(t, ses)
		if returns(func() {
			_ = m.Do(ctx, func(context.Context) error { panic("on purpose") }, rlock.AsyncRelease())
		}) {
			t.Error("the panic was swallowed")
		}
		settled(t, ses)
		if !faultFree(t, s, "x") {
			t.Error("not free after a panic")
		}
	})
}
