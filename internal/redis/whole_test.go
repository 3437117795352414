package redis_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/redis"
	"relock/internal/script"
)

func whole(q *redis.Cleanup, until time.Duration, key string) {
	q.Whole(script.Command{Keys: []string{key}}, until)
}

// isSettled reports whether no command waits for a slot to have moved.
func isSettled(q *redis.Cleanup) bool {
	select {
	case <-q.Settled():
		return true
	default:
		return false
	}
}

// A command that Redis does not serve with all its keys is sent again until Redis does. It holds up no release, and is
// none that Close reports.
func TestACommandWaitsForAllItsKeys(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		served, moved := false, make(chan struct{})
		r.fails = func(_ context.Context, key string) error {
			if key == "moves" && !served {
				return errDial
			}
			return nil
		}
		time.AfterFunc(3400*time.Millisecond, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			served = true
			close(moved)
		})
		whole(q, time.Hour, "moves")
		synctest.Wait()
		release, done := job(time.Hour, "release")
		q.Add(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		select {
		case <-moved:
			t.Error("the release has waited for the slot")
		case <-q.Idle():
		}
		if n := q.Unconfirmed(); n != 0 {
			t.Errorf("%d releases are unconfirmed", n)
		}
		<-moved
		time.Sleep(time.Second)
		synctest.Wait()
		if !isSettled(q) {
			t.Error("the command is left although Redis has served it")
		}
		if n := len(r.sent); n != 9 { // twice a second, and the release
			t.Errorf("%d pipelines were sent: %q", n, r.sent)
		}
	})
}

// It is given up when its time is over, or when Redis has refused it for good: nobody is told.
func TestACommandForAllItsKeysIsGivenUp(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		r.fails = func(_ context.Context, key string) error {
			if key == "refused" {
				return errRefused
			}
			return errDial
		}
		whole(q, time.Hour, "refused")
		synctest.Wait()
		if !isSettled(q) || len(r.sent) != 1 {
			t.Errorf("a command that was refused was sent %d times", len(r.sent))
		}
		whole(q, 1500*time.Millisecond, "moves")
		<-q.Settled()
		if n := len(r.sent); n < 3 || n > 5 {
			t.Errorf("%d pipelines were sent until 1.5 s were over", n)
		}
		if n := q.Unconfirmed(); n != 0 {
			t.Errorf("%d releases are unconfirmed", n)
		}
	})
}

// At the end of the session what is left is dropped.
func TestCommandsForAllTheirKeysEndWithTheSession(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		r.fails = func(context.Context, string) error { return errDial }
		whole(q, time.Hour, "moves")
		synctest.Wait()
		r.end()
		<-q.Settled()
		q.Stop()
		n := len(r.sent)
		whole(q, time.Hour, "late")
		time.Sleep(time.Minute)
		if len(r.sent) != n {
			t.Errorf("after the end were sent: %q", r.sent[n:])
		}
	})
}
