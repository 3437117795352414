package line_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Goroutines of one session alone take turns, and a round trip takes 5 ms. The lock goes through Redis once in a slice
// of 100 ms, whatever the sections cost: a release and an attempt, two round trips, which is a tenth of the time at
// most (scenario 49).
func TestASessionAloneGoesThroughRedisOnceInALongSlice(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const trip, inside, slice, lasts = 5 * time.Millisecond, 200 * time.Microsecond, 100 * time.Millisecond, 2 * time.Second
		var p locktest.Passes
		r, ses := newContest(t, s), farDial(t, s, trip, rlock.Config{Trace: p.Trace()})
		m := rlock.New(ses, r.name)
		for range 16 {
			r.loop(m, inside, &r.sections)
		}
		locktest.Stays(t, r.ctx, 3*slice) // until it has found out that it is alone
		began, sections, handed := time.Now(), r.sections.Load(), p.Count()
		locktest.Stays(t, r.ctx, lasts)
		took := time.Since(began)
		sections, handed = r.sections.Load()-sections, p.Count()-handed
		r.end()
		through := sections - int64(handed)
		busy := float64(sections) * float64(inside) / float64(took)
		t.Logf("%d sections in %v, %d of them through Redis; the lock was in use for %.3f of the time", sections, took, through, busy)
		if most := int64(took/slice) + 2; through < 5 || through > most { // one may have been handed over that has not entered yet
			t.Errorf("%d sections in %v came through Redis, want up to %d", through, took, most)
		}
		if s.IsMini() && busy < 0.9 {
			t.Errorf("the lock was in use for %.3f of the time", busy)
		}
	})
}
