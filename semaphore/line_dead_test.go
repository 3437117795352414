package semaphore_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/semaphore"
)

// Forty sessions that died stand in front of one that waits, and are looked at sixteen in one script: what comes free is
// that one's all the same, and not when it looks by itself, in an hour (scenario 39).
func TestManyDeadSessionsInFrontDoNotKeepPermitsIdle(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"release", "release by id", "set limit", "a counter's release"} {
		t.Run(how, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				clock, err := s.Do(t, "TIME").AsIntSlice()
				must(t, err)
				now := clock[0]*1000 - 1
				for i := range 40 {
					session := fmt.Sprintf("dead%d", i)
					entry := fmt.Sprintf("C0000100%07d%05d%s:1", 5000, len(session), session)
					must(t, s.Do(t, "ZADD", "relock_line1:{x}", fmt.Sprint(now*1000+int64(i)), entry, fmt.Sprint(int64(5e15)-now+60000), "s"+session).Error())
				}
				must(t, s.Do(t, "PEXPIRE", "relock_line1:{x}", "600000").Error())
				giver := dial(t, s, slow())
				m, c := semaphore.New(giver, "x", 1), semaphore.NewCounter(giver, "x")
				live := dial(t, s, slow())
				var done <-chan error
				if how == "a counter's release" {
					done = start(func() error { return semaphore.NewCounter(live, "x").Acquire(ctx, 1) })
					awaitInLine(t, s, "x", 41)
					must(t, c.Release(ctx, 1))
				} else {
					_, held, err := m.TryAcquire(ctx, 1)
					must(t, err)
					done = start(func() error {
						_, p, err := semaphore.New(live, "x", 1).Acquire(ctx, 1)
						if err == nil {
							err = p.Release()
						}
						return err
					})
					awaitInLine(t, s, "x", 41)
					switch how {
					case "release":
						must(t, held.Release())
					case "release by id":
						must(t, m.ReleaseByID(ctx, held.IDs()...))
					default:
						must(t, m.SetLimit(ctx, 2))
					}
				}
				must(t, locktest.Get(t, done, 10*time.Second, "the one behind the dead"))
			})
		})
	}
}
