package rwlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/engine"
	"relock/internal/test/locktest"
	"relock/rlock"
	"relock/rwlock"
)

// A slowToAnswer context takes its time to say whether it has ended, as all do on a machine that has stopped for a moment.
type slowToAnswer struct{ context.Context }

func (c slowToAnswer) Err() error {
	time.Sleep(60 * time.Millisecond)
	return c.Context.Err()
}

// Readers share a hold, and the contexts of all of them take equally long to answer a renewal: none loses the hold because
// another one was heard before it.
func TestReadersWhoseContextsAreAllSlowKeepTheHold(t *testing.T) {
	const lease = 20 * time.Second
	locktest.Leased(t, func(t *testing.T, _ *miniredis.Miniredis, ses *rlock.Session, _ *locktest.Passes) {
		m := rwlock.New(ses, "x")
		var sections []context.Context
		for range 8 {
			section, _ := hold(t, slowToAnswer{context.Background()}, m.RLock)
			(*engine.Session)(ses).SliceFor("rw", "x", time.Minute) // readers may join for so long
			sections = append(sections, section)
		}
		time.Sleep(10 * lease)
		synctest.Wait()
		for i, x := range sections {
			if err := context.Cause(x); err != nil {
				t.Errorf("the section of reader %d has ended with %v", i, err)
			}
		}
	})
}
