package rwlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// shareBubble runs fn on a made-up clock, with n readers that share one hold of the lock "x"
// in a session with the default lease of 30 s: 29 s of trust, a renewal every 10 s.
func shareBubble(t *testing.T, cfg rlock.Config, n int, fn func(t *testing.T, r *miniredis.Miniredis, m sharer, all []guest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := miniredis.NewMiniRedis()
		r.ClockTTL(true)
		defer r.Close()
		ses, other := locktest.DialBubble(t, r, cfg), locktest.DialBubble(t, r, rlock.Config{})
		defer other.Close()
		defer ses.Close()
		m := sharer{RWMutex: rwlock.New(ses, "x"), ses: ses}
		_, w := hold(t, context.Background(), rwlock.New(other, "x").Lock)
		all := make([]guest, n)
		waiting := make([]<-chan locked, n)
		for i := range all {
			own, end := context.WithCancel(context.Background())
			defer end()
			all[i].end = end
			waiting[i] = goLock(own, m.RLock)
		}
		synctest.Wait()
		must(t, w.Unlock())
		for i := range all {
			l := <-waiting[i]
			must(t, l.err)
			all[i].section, all[i].hold = l.ctx, l.hold
			if l.hold.Owner() != all[0].hold.Owner() {
				t.Fatal("not all readers share one hold")
			}
		}
		fn(t, r, m, all)
	})
}

// One renewal keeps all that share, for an hour; when it fails for a lease, all are lost at
// the same moment, and before Redis may let a writer in.
func TestShareIsRenewedAsOne(t *testing.T) {
	var renewed atomic.Int64
	cfg := rlock.Config{Trace: &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed.Add(int64(e.Claims)) }}}
	shareBubble(t, cfg, 100, func(t *testing.T, r *miniredis.Miniredis, _ sharer, all []guest) {
		time.Sleep(time.Hour + time.Second)
		if n := renewed.Load(); n < 360-2 || n > 360+2 {
			t.Errorf("%d renewals in an hour", n)
		}
		left := all[0].hold.Remaining()
		r.SetError("LOADING as after a restart")
		time.Sleep(left - time.Millisecond)
		synctest.Wait()
		for i, g := range all {
			if g.section.Err() != nil {
				t.Fatalf("reader %d is lost too early: %v", i, context.Cause(g.section))
			}
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if !r.Exists("x") {
			t.Error("the lock is over in Redis, and was trusted a millisecond ago")
		}
		r.SetError("")
		for i, g := range all {
			if context.Cause(g.section) != rlock.ErrLost || g.hold.Remaining() != 0 {
				t.Fatalf("reader %d goes on: %v, %v", i, context.Cause(g.section), g.hold.Remaining())
			}
			if !r.Exists("x") {
				t.Errorf("released when reader %d was not unlocked yet", i)
			}
			is(t, "Unlock", g.hold.Unlock(), rlock.ErrLost)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if r.Exists("x") {
			t.Error("the lock stands though all have left")
		}
	})
}

// A reader whose context has ended, and who does not unlock, is lost one lease later, alone;
// if no other reader is left the lock ends too, but not before that one had time to notice.
func TestShareGuestLapsesAlone(t *testing.T) {
	shareBubble(t, rlock.Config{}, 3, func(t *testing.T, r *miniredis.Miniredis, _ sharer, all []guest) {
		time.Sleep(time.Second)
		all[0].end()
		time.Sleep(27*time.Second + 500*time.Millisecond)
		if all[0].hold.Remaining() <= 0 {
			t.Error("lost before its lease was over")
		}
		time.Sleep(time.Second)
		if left := all[0].hold.Remaining(); left != 0 {
			t.Errorf("%v remain to a reader whose context ended a lease ago", left)
		}
		is(t, "Unlock", all[0].hold.Unlock(), rlock.ErrLost)
		time.Sleep(time.Hour)
		for _, g := range all[1:] {
			if g.section.Err() != nil || g.hold.Remaining() <= 0 {
				t.Errorf("another reader was lost with it: %v", context.Cause(g.section))
			}
		}
		all[1].end()
		must(t, all[2].hold.Unlock())
		for i := 0; all[1].hold.Remaining() > 0; i++ {
			if i > 3000 {
				t.Fatal("the reader never lapses")
			}
			if !r.Exists("x") {
				t.Fatal("the lock has ended before the last reader")
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		if !r.Exists("x") {
			t.Error("the lock has ended with the last reader, which had no time to notice")
		}
		time.Sleep(600 * time.Millisecond)
		if r.Exists("x") {
			t.Error("the lock is left")
		}
		is(t, "Unlock", all[1].hold.Unlock(), rlock.ErrLost)
	})
}

// A fixed lease in a shared hold ends when it should, although Redis keeps the lock for what is
// left of the claim's lease if nobody unlocks; and it lasts as long, although the contexts have
// ended and nobody asked for the lock to be renewed when that was due.
func TestShareKeepsFixedLeases(t *testing.T) {
	shareBubble(t, rlock.Config{}, 2, func(t *testing.T, r *miniredis.Miniredis, m sharer, all []guest) {
		_, short := hold(t, all[0].section, m.RLock, rlock.Lease(20*time.Second))
		must(t, all[0].hold.Unlock())
		must(t, all[1].hold.Unlock())
		time.Sleep(19*time.Second - time.Millisecond)
		if short.Remaining() <= 0 {
			t.Error("lost before its end")
		}
		time.Sleep(500 * time.Millisecond)
		if short.Remaining() > 0 || all[0].section.Err() == nil {
			t.Error("it goes on after its end")
		}
		if !r.Exists("x") {
			t.Error("others are let in at the end of the trust: the holder has no time to notice")
		}
		time.Sleep(30 * time.Second)
		if r.Exists("x") {
			t.Error("the lock stands a session lease after the fixed one was over")
		}
		is(t, "Unlock", short.Unlock(), rlock.ErrLost)
	})
	shareBubble(t, rlock.Config{}, 2, func(t *testing.T, r *miniredis.Miniredis, m sharer, all []guest) {
		time.Sleep(time.Second)
		all[0].end()
		all[1].end()
		time.Sleep(14 * time.Second) // past the renewal that nobody wanted
		section, long := hold(t, context.WithoutCancel(all[0].section), m.RLock, rlock.Lease(5*time.Minute))
		time.Sleep(4*time.Minute + 58*time.Second)
		if section.Err() != nil || !r.Exists("x") {
			t.Fatalf("the fixed lease ended early: %v", context.Cause(section))
		}
		must(t, long.Unlock())
	})
}

// Redis knows nothing of a fixed lease in a shared hold. So the hold is renewed for it, also
// when no other is left in the section, for as long as the fixed lease lasts and no longer.
func TestShareRenewsForAFixedLeaseAlone(t *testing.T) {
	shareBubble(t, rlock.Config{}, 2, func(t *testing.T, r *miniredis.Miniredis, m sharer, all []guest) {
		section, long := hold(t, all[0].section, m.RLock, rlock.Lease(5*time.Minute))
		must(t, all[0].hold.Unlock())
		must(t, all[1].hold.Unlock())
		time.Sleep(4*time.Minute + 58*time.Second)
		if section.Err() != nil || long.Remaining() <= 0 || !r.Exists("x") {
			t.Fatalf("the fixed lease ended early: %v, with %v to go", context.Cause(section), long.Remaining())
		}
		time.Sleep(2 * time.Second)
		if section.Err() == nil {
			t.Error("the section goes on after its fixed lease")
		}
		time.Sleep(rlock.DefaultLease + time.Second)
		if r.Exists("x") {
			t.Error("the lock is renewed after the fixed lease was over")
		}
		is(t, "Unlock", long.Unlock(), rlock.ErrLost)
	})
}

// A reader whose context has ended is not renewed, and loses what it shares. The last of the others
// leaves the lock standing until that one, which may just be noticing, has unlocked too.
func TestShareIsNotReleasedUnderALostReader(t *testing.T) {
	shareBubble(t, rlock.Config{}, 2, func(t *testing.T, r *miniredis.Miniredis, _ sharer, all []guest) {
		late, other := all[0], all[1]
		late.end()
		time.Sleep(31 * time.Second)
		if late.hold.Remaining() != 0 || other.section.Err() != nil || other.hold.Remaining() == 0 {
			t.Fatalf("%v and %v remain", late.hold.Remaining(), other.hold.Remaining())
		}
		must(t, other.hold.Unlock())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if !r.Exists("x") {
			t.Error("released when a reader that has lost it was not unlocked yet")
		}
		is(t, "Unlock", late.hold.Unlock(), rlock.ErrLost)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if r.Exists("x") {
			t.Error("the lock stands though all have left")
		}
	})
}
