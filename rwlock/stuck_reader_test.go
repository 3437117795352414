package rwlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/engine"
	"relock/internal/test/locktest"
	"relock/rlock"
	"relock/rwlock"
)

// A mute is a context that does not say whether it has ended, once it is set to wait for something.
type mute struct {
	context.Context
	until atomic.Pointer[chan struct{}]
}

func (c *mute) Err() error {
	if until := c.until.Load(); until != nil {
		<-*until
	}
	return c.Context.Err()
}

// Readers share a hold, and the context of one of them blocks when a renewal asks it: the others have what the renewal
// brings. The one that has not answered has not.
func TestAReaderWhoseContextBlocksLosesNoOthers(t *testing.T) {
	const lease = 20 * time.Second
	locktest.Leased(t, func(t *testing.T, _ *miniredis.Miniredis, ses *rlock.Session, _ *locktest.Passes) {
		gate := make(chan struct{})
		defer close(gate)
		m := rwlock.New(ses, "x")
		section := func(ctx context.Context) context.Context {
			section, _ := hold(t, ctx, m.RLock)
			(*engine.Session)(ses).SliceFor("rw", "x", time.Minute) // readers may join for so long
			return section
		}
		first := section(context.Background())
		blocks := &mute{Context: context.Background()}
		section(blocks)
		third := section(context.Background())
		blocks.until.Store(&gate)
		time.Sleep(5 * lease)
		synctest.Wait()
		for what, x := range map[string]context.Context{"first": first, "third": third} {
			if err := context.Cause(x); err != nil {
				t.Errorf("the section of the %s has ended with %v", what, err)
			}
		}
	})
}

// Callers of one name share a hold, and the context of one of them blocks.
func TestACallerOfANameWhoseContextBlocksLosesNoOthers(t *testing.T) {
	const lease = 20 * time.Second
	locktest.Leased(t, func(t *testing.T, _ *miniredis.Miniredis, ses *rlock.Session, _ *locktest.Passes) {
		gate := make(chan struct{})
		defer close(gate)
		m := rlock.New(ses, "x")
		first, leaves := context.WithCancel(context.Background())
		blocks := &mute{Context: context.Background()}
		var last *rlock.Hold
		for _, ctx := range []context.Context{first, blocks, context.Background()} {
			var err error
			_, last, err = m.Lock(rlock.WithOwner(ctx, "me"))
			locktest.Must(t, err)
		}
		blocks.until.Store(&gate)
		leaves()
		time.Sleep(5 * lease)
		synctest.Wait()
		if last.Remaining() == 0 {
			t.Error("the last caller has lost the lock")
		}
	})
}
