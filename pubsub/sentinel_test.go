package pubsub_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
)

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, s *redistest.Sentinel) (old string){
		"killed": func(_ *testing.T, s *redistest.Sentinel) string { return s.KillMaster() },
		// Stopped, the old master's connection stays open and silent.
		"stopped": func(t *testing.T, s *redistest.Sentinel) string {
			old := s.MasterAddr(t)
			s.Node(old).Pause()
			return old
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.NewSentinel(t)
			h := newHub(t, s.Client(t))
			channel := redistest.Name(t)
			l := record(t, h, channel, false)
			old := fail(t, s)
			begin := time.Now()
			master := s.Node(s.WaitFailover(t, old))
			// Sooner than the ping on the silent connection would tell (10 s).
			redistest.Eventually(t, 5*time.Second, "the hub follows", func() bool {
				return channelsOf(t, master, channel) == 1
			})
			t.Logf("subscribed on the new master after %v", time.Since(begin))
			receiveMissed(t, l)
			receiveMissed(t, l)
			publish(t, master, channel, "x")
			receivePayload(t, l, "x")
			s.Node(old).Resume()
		})
	}
}
