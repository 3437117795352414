package fairlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/fairlock"
	"relock/internal/inbox"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A holder whose context has ended is not renewed, and unlocks late. The next waiter of its run
// waits for a renewal, is let in at once, and by the same claim.
func TestARunIsRenewedThatItsHolderDidNotWantRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		cfg := rlock.Config{Lease: 30 * time.Second, QueueLease: 48 * time.Second, PollFloor: 10 * time.Second}
		a, b := locktest.DialBubble(t, m, cfg), locktest.DialBubble(t, m, cfg)
		defer a.Close()
		defer b.Close()
		_, h, err := fairlock.New(a, "x").Lock(context.Background())
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		holder := goLock(ctx, fairlock.New(b, "x"))
		synctest.Wait()
		time.Sleep(time.Second)
		next := goLock(context.Background(), fairlock.New(b, "x"))
		time.Sleep(time.Second) // both have queued
		must(t, h.Unlock())
		first := <-holder
		must(t, first.err)
		time.Sleep(time.Second) // confirmed
		cancel()
		time.Sleep(20 * time.Second) // a renewal was due
		must(t, first.hold.Unlock())
		began := time.Now()
		second := <-next
		must(t, second.err)
		if d := time.Since(began); d > time.Second || second.hold.Owner() != first.hold.Owner() {
			t.Errorf("the next one came in after %v with owner %q; want at once, with %q", d, second.hold.Owner(), first.hold.Owner())
		}
		must(t, second.hold.Unlock())
		synctest.Wait()
		if keys := redistest.LockKeys(m.Keys()); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// A run that waits for a renewal, whose answer leaves it in doubt, is asked about again at once, and not
// when the next renewal would be due. The message that a named owner was forced out puts it in doubt.
func TestAPausedRunThatStaysInDoubtIsAskedAboutAtOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		o := fairlock.New(dial(t, s, rlock.Config{}), "x")
		ses, p := dialProxy(t, s, rlock.Config{Lease: 10 * time.Hour, QueueLease: time.Hour})
		m := fairlock.New(ses, "x")
		first := granted(t, goLock(ctx, o), patience, "the first")
		lock(t, ctx, fairlock.New(o.Session(), "y"))
		goQueued(t, rlock.WithOwner(ctx, "n"), fairlock.New(ses, "y"), 1)
		other, hold, err := rlock.New(ses, "z").Lock(ctx)
		must(t, err)
		a := goQueued(t, ctx, m, 1)
		b := goQueued(t, ctx, m, 2)
		seen, release := p.HoldReply(renews(t))
		defer release()
		unlock(t, first)
		la := granted(t, a, patience, "a")
		locktest.Get(t, seen, patience, "the renewal")
		unlock(t, la) // b waits for the answer, and what it says is in doubt by then
		for _, r := range []inbox.Note{{Kind: inbox.Lost, Owner: "n", Key: "y"}, {Kind: inbox.Lost, Owner: hold.Owner(), Key: "z"}} {
			must(t, s.Do(t, "PUBLISH", inbox.Prefix+ses.ID(), r.String()).Error())
		}
		locktest.Get(t, other.Done(), patience, "the second message")
		release()
		unlock(t, granted(t, b, patience, "b"))
	})
}
