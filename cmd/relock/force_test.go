package main_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// force takes a lock of each kind from its owner, and lets the next one in.
func TestForce(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dialAs(t, s, "web-3:4711")
		type methods interface {
			Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
		}
		for name, of := range map[string]func(*rlock.Session) methods{
			"mutex":  func(s *rlock.Session) methods { return rlock.New(s, "mutex") },
			"fair":   func(s *rlock.Session) methods { return fairlock.New(s, "fair") },
			"rwlock": func(s *rlock.Session) methods { return rwlock.New(s, "rwlock") },
		} {
			section, _, err := of(session).Lock(within(t))
			must(t, err)
			next := make(chan error, 1)
			inBackground(t, func(ctx context.Context) error {
				// It looks again by itself only after the test's patience is over.
				waiter, err := rlock.Dial(ctx, s.Option(), rlock.Config{QueueLease: 5 * patience, PollFloor: patience})
				if err != nil {
					return err
				}
				defer waiter.Close()
				_, _, err = of(waiter).Lock(ctx)
				next <- err
				return err
			})
			eventually(t, "a waiter of "+name, func() bool {
				l := decode[lock](c, "show", name)
				return l.Waiting+int64(l.Line) > 0
			})
			if r := c.want(0, "force", name); r.out != name+" was taken from web-3:4711\n" {
				t.Errorf("force says %q", r.out)
			}
			select {
			case err := <-next:
				must(t, err)
			case <-time.After(patience / 3):
				t.Fatalf("%s: the next one is not let in", name)
			}
			<-section.Done()
			if context.Cause(section) != rlock.ErrLost {
				t.Errorf("%s: the section ended with %v", name, context.Cause(section))
			}
		}
		r := c.want(1, "force", "--json", "free")
		if !strings.Contains(r.out, `"forced": false`) || r.err != "" {
			t.Errorf("force of a free lock: %q %q", r.out, r.err)
		}
		locksOfAllKinds(t, s, session)
		for name, code := range map[string]int{"a:semaphore": 64, "a:counter": 64, "a:text": 70, "a:hash": 70, "": 64} {
			c.want(code, "force", name)
		}
		if got, err := s.Do(t, "HGET", "a:hash", "field").ToString(); got != "text" || err != nil {
			t.Errorf("another program's hash is %q, %v", got, err)
		}
	})
}
