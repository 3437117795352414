package rlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/inbox"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The message of a ForceUnlock comes late: behind the answer to an attempt that took the lock anew, since the answer
// to the one before was lost. The section ends, and what the attempt has taken is given back with it, not at the end of
// its lease.
func TestFaultForceUnlockIsHeardBehindAnAttemptThatTookTheLockAnew(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		operator := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		name := redistest.Name(t)
		runs := faulttest.HasArg(name)
		p.DropReply(runs)
		sent := 0
		seen, goOn := p.HoldRequest(func(cmd []string) bool {
			if runs(cmd) {
				sent++
			}
			return sent == 2
		})
		p.DropMessages(true)
		locked := faultGoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, seen, 10*time.Second, "the second attempt")
		var owner string
		redistest.Eventually(t, 5*time.Second, "the first attempt runs", func() bool {
			fields, err := s.Do(t, "HKEYS", name).AsStrSlice()
			if err == nil && len(fields) == 1 {
				owner = fields[0]
			}
			return owner != ""
		})
		found, err := rlock.New(operator, name).ForceUnlock(ctx)
		if must(t, err); !found {
			t.Fatal("ForceUnlock found no hold")
		}
		goOn()
		got := locktest.Get(t, locked, 10*time.Second, "Lock")
		must(t, got.err)
		p.DropMessages(false)
		session, _, _ := strings.Cut(owner, ":")
		must(t, s.Do(t, "PUBLISH", inbox.Prefix+session, fmt.Sprintf("lost:%d:%s%s", len(owner), owner, name)).Error())
		locktest.Ends(t, got.ctx, 5*time.Second, rlock.ErrLost)
		locktest.Is(t, "Unlock", got.hold.Unlock(), rlock.ErrLost)
		redistest.Eventually(t, 5*time.Second, "the lock is free before its lease ends", func() bool {
			n, err := s.Do(t, "EXISTS", name).AsInt64()
			return err == nil && n == 0
		})
	})
}
