package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The key of our readers is overwritten with something else while one reads. A renewal cannot prolong its lease then, and so
// does not confirm it: once the lock has ended in Redis, and the key is taken away, a writer is alone inside.
func TestAReaderIsNotConfirmedWithoutTheReadersKey(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		cfg := rlock.Config{Lease: 3 * time.Second}
		reads, reader := hold(t, ctx, rwlock.New(dial(t, s, cfg), name).RLock)
		must(t, s.Do(t, "SET", "relock_readers:{"+name+"}", "something else").Error())
		redistest.Eventually(t, 10*time.Second, "the end of the lease", func() bool {
			there, err := s.Do(t, "EXISTS", name).AsInt64()
			must(t, err)
			return there == 0
		})
		must(t, s.Do(t, "DEL", "relock_readers:{"+name+"}").Error())
		_, writer := hold(t, ctx, rwlock.New(dial(t, s, cfg), name).TryLock)
		if reads.Err() == nil {
			t.Errorf("a reader is beside the writer, and trusts its hold for %v", reader.Remaining())
		}
		is(t, "the reader's unlock", reader.Unlock(), rlock.ErrLost)
		must(t, writer.Unlock())
	})
}
