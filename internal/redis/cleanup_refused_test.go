package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/redis"
)

// A job of which one command is refused for good, while another gets no answer at first, is not confirmed.
func TestARefusedCommandBesideAnUnansweredOneIsNotConfirmed(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		first := true
		r.fails = func(_ context.Context, key string) error {
			switch {
			case key == "refused":
				return errRefused
			case first:
				first = false
				return errDial
			}
			return nil
		}
		j, done := job(time.Hour, "refused", "late")
		q.Add(j)
		if err := <-done; !errors.Is(err, errRefused) {
			t.Errorf("the job ended with %v", err)
		}
		<-j.Gone
		if n := q.Unconfirmed(); n != 1 {
			t.Errorf("%d are unconfirmed, want 1", n)
		}
	})
}
