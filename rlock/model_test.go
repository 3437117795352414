package rlock_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/modeltest"
	"relock/rlock"
)

// Random operations on one mutex, by named and nameless owners in three processes that
// come and go, against a model: who is in, how deep, until when, and what each call may
// return.
func TestRandomAgainstModel(t *testing.T) {
	t.Parallel()
	var handed atomic.Int64
	kind := mutexKind()
	kind.HandedOver = func() { handed.Add(1) }
	found := []uint64{
		12017834863115488389, // a session is called that thinks that it has the lock
		6430465654236071154,  // a release leaves a hold of its owner, and the front outside of the line
		11420660766644932909, // an entry goes while another caller of its session has the lock
	}
	modeltest.Run(t, modeltest.Config{Seeds: 8, Found: found}, func(w *modeltest.World) modeltest.Model {
		return modeltest.NewMutex(w, kind)
	})
	t.Logf("%d hand-overs in memory", handed.Load())
	if handed.Load() == 0 && os.Getenv("RELOCK_SEED") == "" {
		t.Error("no hand-over in memory")
	}
}

// The same with fencing tokens: each is greater than every earlier one, and the same for
// all holds of an owner (R3).
func TestRandomAgainstModelFenced(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Config{Seeds: 3}, func(w *modeltest.World) modeltest.Model {
		return modeltest.NewMutex(w, mutexKind(rlock.Fenced()))
	})
}

func mutexKind(opts ...rlock.MutexOption) modeltest.MutexKind {
	return modeltest.MutexKind{
		Key:    "model",
		Fenced: len(opts) > 0,
		Line:   "relock_line1:{model}",
		New:    func(s *rlock.Session) modeltest.Locker { return rlock.New(s, "model", opts...) },
		Books: func(s *rlock.Session) string {
			held, asking, locks, scheduled, active := locktest.Books(s)
			if held+asking+locks+scheduled+active == 0 {
				return ""
			}
			return fmt.Sprintf("%d held, %d asking, %d locks, %d scheduled, %d active", held, asking, locks, scheduled, active)
		},
	}
}
