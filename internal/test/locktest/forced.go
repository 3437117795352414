package locktest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A Forced is a lock that two sessions take one after the other, under one owner name, and a third takes
// away with commands that run twice.
type Forced struct {
	First, Next func(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	Force       func(ctx context.Context) (bool, error) // by a session behind Proxy
	Proxy       *faulttest.Proxy
	Runs        func(cmd []string) bool // matches the calls of the script
}

// forcedOwner is the owner name of both sessions.
const forcedOwner = "order-17"

// StaysTheNext checks that the second run of a ForceUnlock does not end the next hold, whether the answer to
// the first was lost or an earlier copy comes late.
func (f Forced) StaysTheNext(t *testing.T, s *redistest.Server) {
	for how, twice := range map[string]func(t *testing.T, s *redistest.Server, next func()){
		"the answer was lost": f.resent, "a copy comes late": f.late,
	} {
		t.Run(how, func(t *testing.T) {
			ctx := rlock.WithOwner(Within(t, 30*time.Second), forcedOwner)
			_, first, err := f.First(ctx, rlock.Lease(time.Minute))
			Must(t, err)
			var section context.Context
			var next *rlock.Hold
			twice(t, s, func() {
				section, next, err = f.Next(ctx, rlock.Lease(time.Minute))
				Must(t, err)
			})
			Must(t, next.Extend(ctx, time.Minute)) // Redis has it still
			if section.Err() != nil {
				t.Errorf("the next section has ended: %v", context.Cause(section))
			}
			if err := first.Unlock(); !errors.Is(err, rlock.ErrLost) {
				t.Errorf("Unlock of the hold that was forced: %v", err)
			}
			Must(t, next.Unlock())
			marksEnd(t, s)
		})
	}
}

// resent has the answer to the first run lost, and the second run after next.
func (f Forced) resent(t *testing.T, _ *redistest.Server, next func()) {
	f.Proxy.DropReply(f.ends)
	var copies atomic.Int32
	sent, release := f.Proxy.HoldRequest(func(cmd []string) bool { return f.ends(cmd) && copies.Add(1) == 2 })
	defer release()
	done := make(chan error, 1)
	go func() { done <- f.force(t) }()
	Get(t, sent, 10*time.Second, "the command is sent again")
	next()
	release()
	Must(t, Get(t, done, 20*time.Second, "ForceUnlock returns"))
}

// late has a copy of the command that was lost arrive after next.
func (f Forced) late(t *testing.T, s *redistest.Server, next func()) {
	copied := DropLate(f.Proxy, f.ends, nil)
	Must(t, f.force(t))
	next()
	copied.Arrive(t, s)
}

// ends reports whether a command is one that ends the owner's holds, and not the question before it.
func (f Forced) ends(cmd []string) bool { return f.Runs(cmd) && slices.Contains(cmd, forcedOwner) }

// force runs a ForceUnlock; not to have ended a hold is an error.
func (f Forced) force(t *testing.T) error {
	found, err := f.Force(Within(t, 20*time.Second))
	if err == nil && !found {
		err = errors.New("ForceUnlock has found no hold")
	}
	return err
}

// marksEnd checks that the marks of forced unlocks, of which there are some, have an end.
func marksEnd(t *testing.T, s *redistest.Server) {
	t.Helper()
	marks, err := s.Do(t, "KEYS", "relock_forced:*").AsStrSlice()
	Must(t, err)
	if len(marks) == 0 {
		t.Error("there is no mark")
	}
	for _, key := range marks {
		if ms, err := s.Do(t, "PTTL", key).AsInt64(); err != nil || ms <= 0 || ms > 2*time.Minute.Milliseconds() {
			t.Errorf("%s has a TTL of %d ms, %v", key, ms, err)
		}
	}
}
