package claim_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A lost reply, or a lost request, is no loss: the release is sent again, and counts once.
func TestUnlockAsyncIsSentAgain(t *testing.T) {
	for how, fault := range map[string]func(*faulttest.Proxy, func([]string) bool){
		"reply": (*faulttest.Proxy).DropReply, "request": (*faulttest.Proxy).DropRequest,
	} {
		for _, owner := range []string{"", "order-17"} {
			t.Run(how+" "+owner, func(t *testing.T) {
				redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
					var logged warnings
					ses, p := locktest.DialProxy(t, s, rlock.Config{Logger: slog.New(&logged)})
					ctx := within(t, time.Minute)
					if owner != "" {
						ctx = rlock.WithOwner(ctx, owner)
					}
					name := redistest.Name(t)
					section, h, err := rlock.New(ses, name).Lock(ctx)
					must(t, err)
					_, in, err := rlock.New(ses, name).Lock(section)
					must(t, err)
					fault(p, locktest.Calls(t, "release"))
					in.UnlockAsync()
					redistest.Eventually(t, 10*time.Second, "one hold to be left", func() bool { return locktest.Field(t, s, name, h.Owner()) == "1" })
					redistest.Eventually(t, 10*time.Second, "the answer", func() bool { _, _, _, _, active := locktest.Books(ses); return active == 0 })
					fault(p, locktest.Calls(t, "release"))
					h.UnlockAsync()
					redistest.Eventually(t, 10*time.Second, "the lock to be free", func() bool { return locktest.Free(t, s, name) })
					locktest.Settled(t, ses)
					if n, want := locktest.CallsSent(t, p, "release"), map[string]int{"reply": 4, "request": 2}[how]; n != want {
						t.Errorf("%d releases reached Redis, want %d", n, want)
					}
					if got := logged.all(); strings.Contains(got, "UnlockAsync") || strings.Contains(got, "lost") {
						t.Errorf("the Logger heard %q", got)
					}
				})
			})
		}
	}
}

// Redis does not answer: UnlockAsync returns all the same, the Logger hears when the release timeout is over, and the
// release goes on until Redis answers.
func TestUnlockAsyncInSilence(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const timeout = 500 * time.Millisecond
		var logged warnings
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout, Logger: slog.New(&logged)})
		ctx, name := within(t, time.Minute), redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		p.BlackHole(true)
		began := time.Now()
		h.UnlockAsync()
		if took := time.Since(began); took > s.Slack() {
			t.Errorf("UnlockAsync took %v", took)
		}
		redistest.Eventually(t, 2*timeout+s.Slack(), "the Logger to hear of it", func() bool {
			return strings.Contains(logged.all(), "UnlockAsync") && strings.Contains(logged.all(), "not confirmed within the release timeout")
		})
		p.BlackHole(false)
		redistest.Eventually(t, 5*time.Second+s.Slack(), "the lock to be free", func() bool { return locktest.Free(t, s, name) })
		locktest.Settled(t, ses)
	})
}

// Close waits for a release that is on its way, and Shutdown too; of one that was not confirmed Close tells.
func TestCloseBehindUnlockAsync(t *testing.T) {
	for how, end := range map[string]func(*rlock.Session) error{
		"Close": (*rlock.Session).Close, "Shutdown": func(ses *rlock.Session) error { return ses.Shutdown(context.Background()) },
	} {
		t.Run(how, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				ses, p := locktest.DialProxy(t, s, rlock.Config{})
				name := redistest.Name(t)
				_, h, err := rlock.New(ses, name).Lock(within(t, time.Minute))
				must(t, err)
				seen, release := p.HoldRequest(locktest.Calls(t, "release"))
				defer release()
				h.UnlockAsync()
				locktest.Get(t, seen, 5*time.Second, "the release")
				closed := locktest.Go(func() error { return end(ses) })
				select {
				case err := <-closed:
					t.Fatalf("%s did not wait: %v", how, err)
				case <-time.After(50 * time.Millisecond):
				}
				release()
				must(t, locktest.Get(t, closed, 10*time.Second, how))
				if !locktest.Free(t, s, name) {
					t.Error("not free")
				}
				h.UnlockAsync() // which does no harm
			})
		})
	}
}

func TestCloseTellsOfUnlockAsyncWithoutAnAnswer(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 300 * time.Millisecond})
		ctx, name := within(t, time.Minute), redistest.Name(t)
		var holds []*rlock.Hold
		for i := range 3 {
			_, h, err := rlock.New(ses, fmt.Sprint(name, i)).Lock(ctx)
			must(t, err)
			holds = append(holds, h)
		}
		p.BlackHole(true)
		for _, h := range holds {
			h.UnlockAsync()
		}
		err := ses.Close()
		if !errors.Is(err, rlock.ErrUnavailable) || !strings.Contains(err.Error(), "3 releases") {
			t.Errorf("Close: %v, want it to tell of 3 releases", err)
		}
	})
}

// A thousand releases at once need a few goroutines, and leave none.
func TestUnlockAsyncOfManyNeedsFewGoroutines(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx := within(t, time.Minute)
		n := 1000
		if redistest.Race { // with which miniredis has not answered as many before they are sent again
			n = 100
		}
		holds := make([]*rlock.Hold, n)
		for i := range holds {
			_, h, err := rlock.New(ses, fmt.Sprint("x", i)).Lock(ctx)
			must(t, err)
			holds[i] = h
		}
		_, release := p.HoldReply(locktest.Calls(t, "release"))
		defer release()
		before, most := runtime.NumGoroutine(), 0
		for _, h := range holds {
			h.UnlockAsync()
			most = max(most, runtime.NumGoroutine()-before)
		}
		if most > 8 {
			t.Errorf("%d goroutines more than before", most)
		}
		release()
		locktest.Settled(t, ses)
		redistest.Eventually(t, 10*time.Second, "no goroutine more than before", func() bool { return runtime.NumGoroutine() <= before })
		for i := range holds {
			if !locktest.Free(t, s, fmt.Sprint("x", i)) {
				t.Fatalf("x%d is not free", i)
			}
		}
		if got := locktest.CallsSent(t, p, "release"); got != n {
			t.Errorf("%d releases, want %d", got, n)
		}
	})
}
