package close_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// A caller of a named owner that waits for what another one of that name gets leaves when Shutdown
// begins if it is in no section, although the other one is in one and goes on.
func TestShutdownEndsACallerBehindOneOfItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := miniredis.NewMiniRedis()
		r.ClockTTL(true)
		defer r.Close()
		ses, other := locktest.DialBubble(t, r, rlock.Config{}), locktest.DialBubble(t, r, rlock.Config{})
		defer other.Close()
		defer ses.Close()
		ctx := context.Background()
		_, h, err := rlock.New(other, "x").Lock(ctx)
		must(t, err)
		section, outer, err := rlock.New(ses, "y").Lock(ctx)
		must(t, err)
		x := rlock.New(ses, "x")
		inside := locktest.Go(func() error {
			return x.Do(rlock.WithOwner(section, "bob"), func(context.Context) error { return nil })
		})
		synctest.Wait()
		outside := locktest.Go(func() error { _, _, err := x.Lock(rlock.WithOwner(ctx, "bob")); return err })
		synctest.Wait()
		done := locktest.Go(func() error { return ses.Shutdown(ctx) })
		locktest.Is(t, "the one outside", locktest.Get(t, outside, time.Millisecond, "it"), rlock.ErrClosed)
		must(t, h.Unlock())
		must(t, locktest.Get(t, inside, 5*time.Second, "the one inside"))
		must(t, outer.Unlock())
		must(t, locktest.Get(t, done, 5*time.Second, "Shutdown"))
	})
}
