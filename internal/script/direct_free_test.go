package script_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"relock/internal/script"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// wantFree fails the test if what waits for calls over the direct connection goes on waiting.
func wantFree(t *testing.T, r *script.Runner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.Wait(ctx); err != nil {
		t.Fatalf("a call over the direct connection counts as under way for good: %v", err)
	}
}

// However a call over the direct connection ends, it is not under way afterwards, and the next ones are
// executed, over each connection.
func TestDirectIsFreeAfterEachEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, r *script.Runner, re *relay){
		"answered": func(t *testing.T, r *script.Runner, _ *relay) {
			locktest.Must(t, r.Run(t.Context(), appending("first")).Error())
		},
		"broken": func(t *testing.T, r *script.Runner, re *relay) {
			re.cut(toClient, 0)
			if r.Run(t.Context(), appending("first")).Error() == nil {
				t.Error("no error")
			}
		},
		"closed": func(t *testing.T, r *script.Runner, re *relay) {
			reached, letGo := re.hold(toClient, 0)
			defer letGo()
			first := goRun(t.Context(), r, "first")
			locktest.Get(t, reached, 10*time.Second, "the reply")
			r.Close()
			if err := locktest.Get(t, first, 10*time.Second, "the call"); err == nil || script.Classify(err) != script.Unknown {
				t.Errorf("the error is %v", err)
			}
		},
		"given up, answered": func(t *testing.T, r *script.Runner, re *relay) { giveUp(t, r, re)() },
		"given up":           func(t *testing.T, r *script.Runner, re *relay) { _ = giveUp(t, r, re) },
		"panic": func(t *testing.T, r *script.Runner, re *relay) {
			re.end().onRead = func() { panic("the caller's connection") }
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = r.Run(t.Context(), appending("first"))
		},
		"Goexit": func(t *testing.T, r *script.Runner, re *relay) {
			re.end().onRead = runtime.Goexit
			var call sync.WaitGroup
			call.Go(func() { _ = r.Run(t.Context(), appending("first")) })
			call.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			r, re := relayed(t, s, 30*time.Second)
			end(t, r, re)
			wantFree(t, r)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			locktest.Must(t, r.Run(ctx, appending("second")).Error())
			locktest.Must(t, r.Multi(ctx, []script.Command{appending("third")})[0].Error())
			wantExecuted(t, s, "first", "second", "third")
		})
	}
}

// giveUp has a call given up when it has been executed. Its reply is held until letGo is called.
func giveUp(t *testing.T, r *script.Runner, re *relay) (letGo func()) {
	t.Helper()
	reached, letGo := re.hold(toClient, 0)
	ctx, cancel := context.WithCancel(t.Context())
	first := goRun(ctx, r, "first")
	locktest.Get(t, reached, 10*time.Second, "the reply")
	cancel()
	if err := locktest.Get(t, first, 10*time.Second, "the call"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	return letGo
}

// The context ends between a reply that the script is unknown and the sending of it, whole: rueidis sets a
// deadline for that, which must not let it be sent.
func TestDirectStaysInterrupted(t *testing.T) {
	s := redistest.Real(t)
	const timeout = 800 * time.Millisecond
	r, re := relayed(t, s, timeout)
	locktest.Must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := make(chan struct{})
	end := sync.OnceFunc(func() { close(interrupted) })
	o := re.end()
	o.onDeadline = func(d time.Time) {
		if d.Before(time.Now()) {
			end()
		}
	}
	o.onRead = sync.OnceFunc(func() {
		cancel()
		<-interrupted
		time.Sleep(timeout / 6) // the deadline that was set, up to an eighth later than asked for, will not do any more
	})
	if err := r.Run(ctx, appending("first")).Error(); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	wantFree(t, r)
	locktest.Must(t, r.Run(t.Context(), appending("second")).Error())
	wantExecuted(t, s, "second")
}

// A caller that has found no direct connection, and sees to one when another caller's is ready, has none made:
// of two, one would be used beside what was given up over the other.
func TestDirectIsOneConnection(t *testing.T) {
	s := redistest.Real(t)
	r, re := relayed(t, s, 3*time.Second)
	if r.RenewLate() || re.dials() != 1 {
		t.Error("another connection is made")
	}
}
