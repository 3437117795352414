package engine

import (
	"testing"
	"time"
)

// Entries that came within a quarter of the time between two heartbeats have theirs together, and from then on
// all that time apart; an entry that has more reason to be heard of has it sooner, one that may have missed a message
// at once, and none twice in a millisecond.
func TestHeartbeatsComeTogether(t *testing.T) {
	const ms = time.Millisecond
	s := &Session{cfg: Config{QueueLease: 480 * ms, PollFloor: time.Hour}, now: func() time.Duration { return 1010 * ms }}
	for _, c := range []struct {
		asked time.Duration
		ms    int64
		doubt bool
		want  time.Duration
	}{
		{1000 * ms, -1, false, 1100 * ms},
		{1001 * ms, -1, false, 1100 * ms},
		{1024 * ms, -1, false, 1100 * ms},
		{1025 * ms, -1, false, 1125 * ms},
		{1001 * ms, 40, false, 1042 * ms},
		{1001 * ms, 400, false, 1100 * ms},
		{1001 * ms, 0, false, 1011 * ms},
		{1001 * ms, -1, true, 1011 * ms},
	} {
		if got := s.nextHeartbeat(c.asked, s.cfg.HeartbeatEvery(), c.ms, c.doubt); got != c.want {
			t.Errorf("after one at %v, and %d ms: the next one is at %v, want %v", c.asked, c.ms, got, c.want)
		}
	}
}
