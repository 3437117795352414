package claim_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// While a machine is suspended Redis's time goes on, and the monotonic clock here stands still. What was lost
// meanwhile is noticed when Redis is asked next: within a third of the session's lease, fixed leases too, or
// by a call before that.
func TestASuspendedMachineLearnsFromRedis(t *testing.T) {
	const lease = 9 * time.Second
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, rlock.Config{Lease: lease}), within(t, 30*time.Second)
		renewed, h, err := rlock.New(ses, "renewed").Lock(ctx)
		must(t, err)
		fixed, long, err := rlock.New(ses, "fixed").Lock(ctx, rlock.Lease(time.Minute))
		must(t, err)
		_, extended, err := rlock.New(ses, "extended").Lock(ctx, rlock.Lease(time.Minute))
		must(t, err)
		_, unlocked, err := rlock.New(ses, "unlocked").Lock(ctx)
		must(t, err)
		if s.IsMini() {
			s.Mini.FastForward(time.Minute)
		} else {
			must(t, s.Do(t, "DEL", "renewed", "fixed", "extended", "unlocked").Error())
		}
		if left := h.Remaining(); left < lease*2/3 {
			t.Errorf("%v remains: the machine's clock has gone on", left)
		}
		locktest.Is(t, "Extend", extended.Extend(ctx, time.Minute), rlock.ErrLost)
		locktest.Is(t, "Unlock after that", extended.Unlock(), rlock.ErrLost)
		locktest.Is(t, "Unlock", unlocked.Unlock(), rlock.ErrLost)
		third := s.Slowed(lease/3 + 100*time.Millisecond)
		locktest.Ends(t, renewed, third, rlock.ErrLost)
		locktest.Ends(t, fixed, third, rlock.ErrLost)
		locktest.Is(t, "Unlock of what was renewed", h.Unlock(), rlock.ErrLost)
		locktest.Is(t, "Unlock of a fixed lease", long.Unlock(), rlock.ErrLost)
	})
}
