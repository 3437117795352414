package claim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Cycles with UnlockAsync send what cycles with Unlock do, in the same order: never an attempt before the release
// of the hold before.
func TestUnlockAsyncSendsTheSameCommands(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx, m := within(t, time.Minute), rlock.New(ses, "x")
		acquires, releases := locktest.Calls(t, "acquire"), locktest.Calls(t, "release")
		const n = 300
		for range n {
			section, h, err := m.Lock(ctx)
			must(t, err)
			h.UnlockAsync()
			if !errors.Is(context.Cause(section), rlock.ErrReleased) {
				t.Fatalf("the section goes on: %v", context.Cause(section))
			}
		}
		locktest.Settled(t, ses)
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
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		section, h := st.Lock(st.Ctx)
		seen, release := st.Proxy.HoldRequest(locktest.Calls(t, "release"))
		defer release()
		h.UnlockAsync()
		locktest.Ends(t, section, time.Second, rlock.ErrReleased)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrNotHeld)
		locktest.Get(t, seen, 5*time.Second, "the release")
		if locktest.Free(t, s, st.Name) {
			t.Fatal("free before the release has arrived")
		}
		asked := locktest.CallsSent(t, st.Proxy, "acquire")
		next := st.Queue(st.Ctx)
		if now := locktest.CallsSent(t, st.Proxy, "acquire"); now != asked {
			t.Errorf("the next Lock has sent %d attempts before the release was answered", now-asked)
		}
		release()
		must(t, st.In(next).Hold.Unlock())
		if n := locktest.CallsSent(t, st.Proxy, "release"); n != 2 {
			t.Errorf("%d releases, want 2", n)
		}
	})
}

// A busy is a session whose background has as many releases on their way as it sends at a time, none of which is
// answered until free is called: one more stays with the session until an attempt takes it along.
func busy(t *testing.T, st *locktest.Stage) (free func()) {
	t.Helper()
	var holds []*rlock.Hold
	for i := range 4 {
		_, h, err := rlock.New(st.Session, fmt.Sprint(st.Name, " busy ", i)).Lock(st.Ctx)
		must(t, err)
		holds = append(holds, h)
	}
	before := locktest.CallsSent(t, st.Proxy, "release")
	_, free = st.Proxy.HoldReply(locktest.Calls(t, "release"))
	t.Cleanup(free)
	for i, h := range holds {
		h.UnlockAsync()
		redistest.Eventually(t, 10*time.Second, "a release to leave", func() bool { return locktest.CallsSent(t, st.Proxy, "release") == before+i+1 })
	}
	return free
}

// An attempt takes the release along that has not left yet: one pipeline, the release first.
func TestUnlockAsyncGoesWithTheNextAttempt(t *testing.T) {
	for _, try := range []bool{false, true} {
		t.Run(fmt.Sprintf("try %v", try), func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				st := locktest.NewStage(t, s, rlock.Config{})
				_, h := st.Lock(st.Ctx)
				free := busy(t, st)
				before := locktest.CallsSent(t, st.Proxy, "release")
				h.UnlockAsync()
				lock := st.Mutex.Lock
				if try {
					lock = st.Mutex.TryLock
				}
				got := make(chan locktest.Locked, 1)
				go func() {
					section, next, err := lock(st.Ctx)
					got <- locktest.Locked{Ctx: section, Hold: next, Err: err, At: time.Now()}
				}()
				redistest.Eventually(t, 10*time.Second, "release and attempt", func() bool {
					return locktest.CallsSent(t, st.Proxy, "release") == before+1 && locktest.Field(t, s, st.Name, h.Owner()) == "" && !locktest.Free(t, s, st.Name)
				})
				free()
				g := locktest.Get(t, got, 10*time.Second, "the lock")
				must(t, g.Err)
				must(t, g.Hold.Unlock())
				locktest.Settled(t, st.Session)
			})
		})
	}
}

// What takes the release along may end before it is sent or answered: the release goes on.
func TestUnlockAsyncOutlivesWhatTakesItAlong(t *testing.T) {
	for how, end := range map[string]func(*locktest.Stage) (ctx context.Context, then func()){
		"cancelled on its way": func(st *locktest.Stage) (context.Context, func()) { return context.WithCancel(st.Ctx) },
		"a context that panics": func(st *locktest.Stage) (context.Context, func()) {
			return &panics{Context: st.Ctx}, func() {}
		},
	} {
		t.Run(how, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				st := locktest.NewStage(t, s, rlock.Config{})
				_, h := st.Lock(st.Ctx)
				free := busy(t, st)
				before := locktest.CallsSent(t, st.Proxy, "release")
				h.UnlockAsync()
				ctx, then := end(st)
				over := make(chan struct{})
				go func() {
					defer close(over)
					returns(func() {
						if _, next, err := st.Mutex.TryLock(ctx); err == nil {
							_ = next.Unlock()
						}
					})
				}()
				if _, bad := ctx.(*panics); !bad {
					redistest.Eventually(t, 10*time.Second, "the release", func() bool { return locktest.CallsSent(t, st.Proxy, "release") == before+1 })
				} else {
					locktest.Get(t, over, 10*time.Second, "the panic")
				}
				then()
				locktest.Get(t, over, 10*time.Second, "the end of TryLock")
				free()
				redistest.Eventually(t, 10*time.Second, "the lock to be free", func() bool { return locktest.Free(t, s, st.Name) })
			})
		})
	}
}

// A panics is a context whose Done panics once an attempt is about to be sent.
type panics struct{ context.Context }

func (c *panics) Done() <-chan struct{} { panic("on purpose") }

func TestUnlockAsyncOfNothing(t *testing.T) {
	var none *rlock.Hold
	none.UnlockAsync()
	new(rlock.Hold).UnlockAsync()
}

// Hand-over in memory sends nothing, as that of Unlock.
func TestUnlockAsyncHandsOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		_, h := st.Lock(st.Ctx)
		next := st.Queue(st.Ctx)
		st.Proxy.Reset()
		h.UnlockAsync()
		got := st.In(next)
		if n := len(st.Proxy.Sent()); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
		if got.Hold.Owner() != h.Owner() {
			t.Errorf("the lock went through Redis")
		}
		got.Hold.UnlockAsync()
		locktest.Settled(t, st.Session)
	})
}

// Of Do it is an option, of no other call.
func TestAsyncRelease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx, m := within(t, time.Minute), rlock.New(ses, "x")
		_, _, err := m.Lock(ctx, rlock.AsyncRelease())
		locktest.Is(t, "Lock", err, rlock.ErrArgument)
		_, _, err = m.TryLock(ctx, rlock.AsyncRelease())
		locktest.Is(t, "TryLock", err, rlock.ErrArgument)
		if n := len(p.Sent()); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
		seen, release := p.HoldRequest(locktest.Calls(t, "release"))
		defer release()
		of := errors.New("of fn")
		err = m.Do(ctx, func(context.Context) error { return of }, rlock.AsyncRelease())
		if err != of {
			t.Errorf("Do: %v, want fn's error", err)
		}
		locktest.Get(t, seen, 5*time.Second, "the release")
		release()
		locktest.Settled(t, ses)
		if returns(func() {
			_ = m.Do(ctx, func(context.Context) error { panic("on purpose") }, rlock.AsyncRelease())
		}) {
			t.Error("the panic was swallowed")
		}
		locktest.Settled(t, ses)
		if !locktest.Free(t, s, "x") {
			t.Error("not free after a panic")
		}
	})
}
