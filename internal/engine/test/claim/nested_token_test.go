package claim_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A plain section in which a fenced handle of the same name locks has that token from then on, also
// for a goroutine that asks meanwhile. (One name should be locked by handles of one kind.)
func TestAFencedLockInAPlainSectionGivesItAToken(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, rlock.Config{}), within(t, 10*time.Second)
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		seen, asking := make(chan int64), make(chan struct{})
		go func() {
			close(asking)
			for h.Token() == 0 && ctx.Err() == nil {
			}
			seen <- h.Token()
		}()
		<-asking
		_, inner, err := rlock.New(ses, name, rlock.Fenced()).Lock(section)
		must(t, err)
		if n := <-seen; n != 1 || inner.Token() != 1 {
			t.Errorf("the section's token is %d, the nested hold's %d, want 1", n, inner.Token())
		}
		must(t, inner.Unlock())
		must(t, h.Unlock())
	})
}
