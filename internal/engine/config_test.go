package engine_test

import (
	"testing"
	"time"

	"relock/internal/engine"
)

// Two silent heartbeats, a grant that nobody confirms and one heartbeat more fit into a QueueLease.
func TestAQueueLeaseOutlastsDeadWaiters(t *testing.T) {
	for _, lease := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute} {
		c := engine.Config{QueueLease: lease, PollFloor: time.Hour}
		if d := 2*lease*11/48 + lease/4 + c.HeartbeatEvery(); d > lease {
			t.Errorf("QueueLease %v: the next is in after %v", lease, d)
		}
		c.PollFloor = 10 * time.Millisecond
		if d := c.HeartbeatEvery(); d != min(lease/24*5, 10*time.Millisecond) {
			t.Errorf("QueueLease %v, PollFloor 10ms: a heartbeat every %v", lease, d)
		}
	}
	if d := (&engine.Config{}).HeartbeatEvery(); d < time.Millisecond {
		t.Errorf("a heartbeat every %v at the least", d)
	}
}

func TestTryTimeout(t *testing.T) {
	c := engine.Config{ReleaseTimeout: 5 * time.Second, ReplicaTimeout: 3 * time.Second}
	if d := c.TryTimeout(); d != time.Second {
		t.Errorf("without replicas %v, want 1s", d)
	}
	c.Replicas = 1
	if d := c.TryTimeout(); d != 4*time.Second {
		t.Errorf("with replicas %v, want 4s", d)
	}
	c.ReleaseTimeout = 200 * time.Millisecond
	if d := c.TryTimeout(); d != 3200*time.Millisecond {
		t.Errorf("with a short ReleaseTimeout %v, want 3.2s", d)
	}
}

func TestRequestMemoryOutlastsTheRelease(t *testing.T) {
	for _, d := range []time.Duration{time.Second, time.Hour} {
		if c := (engine.Config{ReleaseTimeout: d}); c.RequestMemory() < max(d+time.Minute, 3*time.Minute) {
			t.Errorf("ReleaseTimeout %v: Redis remembers for %v", d, c.RequestMemory())
		}
	}
}
