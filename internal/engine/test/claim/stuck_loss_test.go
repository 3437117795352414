package claim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A renewal finds some of its locks gone, and the contexts of their callers block when they are ended. The other locks of
// that renewal are trusted for one lease more.
func TestAStuckContextOfALostLockDelaysNoOtherRenewal(t *testing.T) {
	locktest.Leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, _ *locktest.Passes) {
		parent, cancel := context.WithCancel(context.Background())
		defer cancel()
		gate := make(chan struct{})
		defer close(gate)
		sections, gone := map[string]context.Context{}, []string{}
		for i := range 9 {
			name := fmt.Sprint("lock ", i)
			if i%3 != 1 {
				section, _, err := rlock.New(ses, name).Lock(context.Background())
				must(t, err)
				sections[name] = section
				continue
			}
			stuck := &stuckContext{Context: parent}
			section, _, err := rlock.New(ses, name).Lock(stuck)
			must(t, err)
			section.Done() // from now on there is something to be ended
			stuck.stuck.Store(&gate)
			gone = append(gone, name)
		}
		for _, name := range gone {
			m.Del(name)
		}
		time.Sleep(time.Minute)
		for name, section := range sections {
			if err := context.Cause(section); err != nil {
				t.Errorf("%s: its section has ended with %v", name, err)
			}
		}
	})
}

// Another caller of the session finds out that a lock was lost, and the context of its caller blocks when it is ended: that
// other caller has the lock, and does not wait for it.
func TestAStuckContextOfALostLockDelaysNoOtherCaller(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		parent, cancel := context.WithCancel(context.Background())
		defer cancel()
		gate := make(chan struct{})
		defer close(gate)
		stuck := &stuckContext{Context: parent}
		m := rlock.New(ses, "x")
		section, lost, err := m.Lock(stuck)
		must(t, err)
		ended := section.Done() // from now on there is something to be ended
		stuck.stuck.Store(&gate)
		must(t, s.Do(t, "DEL", "x").Error())
		got := make(chan locktest.Locked, 1)
		go func() {
			_, h, err := m.TryLock(within(t, time.Minute))
			got <- locktest.Locked{Hold: h, Err: err}
		}()
		in := locktest.Get(t, got, 10*time.Second, "the lock")
		must(t, in.Err)
		locktest.Get(t, ended, 10*time.Second, "the end of the section before")
		locktest.Is(t, "Unlock of a lock that is lost", lost.Unlock(), rlock.ErrLost)
		must(t, in.Hold.Unlock())
	})
}

// Two callers of one name share a lock, and the context of the first blocks when it is ended: the second hears all the same
// that the lock was lost.
func TestAStuckContextKeepsNoOtherCallerOfItsNameFromALoss(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		parent, cancel := context.WithCancel(context.Background())
		defer cancel()
		gate := make(chan struct{})
		defer close(gate)
		stuck := &stuckContext{Context: parent}
		m := rlock.New(ses, "x")
		first, _, err := m.Lock(rlock.WithOwner(stuck, "me"))
		must(t, err)
		first.Done() // from now on there is something to be ended
		second, _, err := m.Lock(rlock.WithOwner(within(t, time.Minute), "me"))
		must(t, err)
		third, _, err := m.Lock(second, rlock.Lease(time.Minute))
		must(t, err)
		stuck.stuck.Store(&gate)
		found, err := m.ForceUnlock(within(t, time.Minute))
		must(t, err)
		if !found {
			t.Error("the lock was not held")
		}
		locktest.Ends(t, second, 10*time.Second, rlock.ErrLost)
		locktest.Ends(t, third, 10*time.Second, rlock.ErrLost)
	})
}
