package fault_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The connection has broken, and the server that the next one leads to does not answer its greeting in time:
// no release was sent. When it serves again it does not know the lock, as after a failover that has lost it.
// So the Unlock was too late, and says so; it must not take that release for one that has worked.
func TestFaultUnlockBehindAGreetingWithoutAnAnswer(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: time.Minute})
		name := redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(within(t, time.Minute))
		must(t, err)
		p.Refuse(true)
		_, _, err = rlock.New(ses, name+"2").TryLock(within(t, time.Minute))
		locktest.Is(t, "TryLock, by which the client finds that its connections are gone", err, rlock.ErrUnavailable)
		p.BlackHole(true)
		p.Refuse(false)
		unlocked := locktest.Go(h.Unlock)
		must(t, s.Do(t, "DEL", name).Error())
		select {
		case err := <-unlocked:
			t.Fatalf("Unlock, which nobody has answered: %v", err)
		case <-time.After(6 * time.Second): // a greeting ends sooner, by the timeouts of rueidis
		}
		p.BlackHole(false)
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, time.Minute, "Unlock"), rlock.ErrLost)
	})
}
