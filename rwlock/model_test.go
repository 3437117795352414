package rwlock_test

import (
	"context"
	"testing"

	"relock/internal/test/modeltest"
	"relock/rlock"
	"relock/rwlock"
)

// Random operations on one lock, by named and nameless owners in three processes that come
// and go, against a model: who is in, on which side, how deep, until when, who is kept out
// by waiting writers and for how long, and what each call may return.
func TestRandomAgainstModel(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Config{Seeds: 8, Session: rlock.Config{HandOverLimit: -1}}, func(w *modeltest.World) modeltest.Model {
		return modeltest.NewRW(w, modeltest.RWKind{
			Key: "model", Readers: "relock_readers:{model}", Line: "relock_line1:{model}", Timeout: "{model}:",
			Upgrade: rwlock.ErrUpgrade,
			New:     func(s *rlock.Session) modeltest.RWLocker { return rwlock.New(s, "model") },
			State: func(ctx context.Context, s *rlock.Session) (string, map[string]int, error) {
				st, err := rwlock.New(s, "model").State(ctx)
				return st.Mode, st.Owners, err
			},
		})
	})
}
