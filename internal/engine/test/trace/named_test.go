package trace_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// A caller that waits behind another one of its name waits for a release as that one does, and the hooks
// are told so.
func TestTraceOfCallersOfOneNameThatWait(t *testing.T) {
	type lock = func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	for kind, of := range map[string]func(ses *rlock.Session, name string) lock{
		"mutex": func(ses *rlock.Session, name string) lock { return rlock.New(ses, name).Lock },
		"fair":  func(ses *rlock.Session, name string) lock { return fairlock.New(ses, name).Lock },
		"write": func(ses *rlock.Session, name string) lock { return rwlock.New(ses, name).Lock },
	} {
		t.Run(kind, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				waiting, ends := make(chan locktrace.Waiting, 10), make(chan locktrace.AcquireEnd, 10)
				ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
					Waiting:    func(_ context.Context, e locktrace.Waiting) { waiting <- e },
					AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) { ends <- e },
				}})
				name := redistest.Name(t)
				_, h, err := of(dial(t, s, rlock.Config{}), name)(within(t, time.Minute))
				must(t, err)
				ctx := rlock.WithOwner(within(t, time.Minute), "me")
				unlocked := make(chan error, 3)
				for n := range cap(unlocked) {
					go func() {
						_, h, err := of(ses, name)(ctx)
						if err == nil {
							err = h.Unlock()
						}
						unlocked <- err
					}()
					e := locktest.Get(t, waiting, 10*time.Second, "one more waiter")
					if e.Owner != "me" || e.Kind != kind || e.Queue != n+1 {
						t.Errorf("waiter %d: %+v", n+1, e)
					}
				}
				must(t, h.Unlock())
				for n := range cap(unlocked) {
					must(t, locktest.Get(t, unlocked, 10*time.Second, "a waiter"))
					e := <-ends
					if !e.Waited || e.Err != nil || e.Queue > 2-n {
						t.Errorf("end %d: %+v", n+1, e)
					}
				}
				if len(waiting) > 0 {
					t.Errorf("another waiter: %+v", <-waiting)
				}
			})
		})
	}
}
