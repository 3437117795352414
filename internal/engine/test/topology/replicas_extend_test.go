package topology_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The new end of a fixed lease is acknowledged too, since no renewal follows that would bring a
// replica in step. An Extend that is not acknowledged leaves the hold with its old end.
func TestReplicasOfAnExtend(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	ses := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
	ctx := within(t, 2*time.Minute)
	for what, owner := range map[string]context.Context{"private": ctx, "named": rlock.WithOwner(ctx, "somebody")} {
		name := redistest.Name(t) + what
		_, h, err := rlock.New(ses, name).Lock(owner, rlock.Lease(time.Minute))
		must(t, err)
		lives := func(s *redistest.Server) time.Duration {
			ms, err := s.Do(t, "PTTL", name).AsInt64()
			must(t, err)
			return time.Duration(ms) * time.Millisecond
		}
		replicas[0].Pause()
		short, cancel := context.WithTimeout(ctx, 3*replTimeout)
		err = h.Extend(short, 2*time.Minute)
		cancel()
		topoIs(t, what+": an Extend whose deadline passes", err, rlock.ErrUnavailable, context.DeadlineExceeded)
		if !replTells(err, "0 of 1 replicas") {
			t.Errorf("%s: the error is %v", what, err)
		}
		if left := h.Remaining(); left > time.Minute {
			t.Errorf("%s: what no replica has is trusted for %v", what, left)
		}

		done := make(chan error, 1)
		go func() { done <- h.Extend(ctx, 5*time.Minute) }()
		redistest.Eventually(t, locktest.Patience, "the master to have the new end", func() bool { return lives(master) > 4*time.Minute })
		select {
		case err := <-done:
			t.Errorf("%s: Extend returned before the replica has the end: %v", what, err)
		case <-time.After(2 * replTimeout):
		}
		replicas[0].Resume()
		must(t, locktest.Get(t, done, locktest.Patience, "Extend"))
		if left := lives(replicas[0]); left < 4*time.Minute {
			t.Errorf("%s: the replica knows of %v", what, left)
		}
		if left := h.Remaining(); what == "private" && left < 4*time.Minute { // see RedissonWatchdog
			t.Errorf("the hold is trusted for %v", left)
		}
		must(t, h.Unlock())
	}
}
