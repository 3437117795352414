package redis_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/redis"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

func addSpare(q *redis.Cleanup, until time.Duration, key string) {
	q.AddSpare(script.Command{Keys: []string{key}}, until)
}

// errMoving returns what Redis answers to a command whose slot is half moved.
func errMoving(t *testing.T) error {
	s := redistest.Mini(t)
	s.Mini.SetError("TRYAGAIN Multiple keys request during rehashing of slot")
	err := s.Do(t, "GET", "x").Error()
	if s.Mini.SetError(""); !script.IsTryAgain(err) {
		t.Fatalf("%v", err)
	}
	return err
}

// isSettled reports whether no spare job is left.
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
func TestASpareJobWaitsForItsSlot(t *testing.T) {
	moving := errMoving(t)
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		served, moved := false, make(chan struct{})
		r.fails = func(_ context.Context, key string) error {
			if key == "moves" && !served {
				return moving
			}
			return nil
		}
		time.AfterFunc(3400*time.Millisecond, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			served = true
			close(moved)
		})
		addSpare(q, time.Hour, "moves")
		synctest.Wait()
		release, done := job(time.Hour, "release")
		began := time.Now()
		q.Add(release)
		if err := <-done; err != nil || time.Since(began) > 0 {
			t.Errorf("the release took %v: %v", time.Since(began), err)
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
func TestASpareJobIsGivenUp(t *testing.T) {
	moving := errMoving(t)
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		r.fails = func(_ context.Context, key string) error {
			if key == "refused" {
				return errRefused
			}
			return moving
		}
		addSpare(q, time.Hour, "refused")
		synctest.Wait()
		if !isSettled(q) || len(r.sent) != 1 {
			t.Errorf("a command that was refused was sent %d times", len(r.sent))
		}
		addSpare(q, 1500*time.Millisecond, "moves")
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
func TestSpareJobsEndWithTheSession(t *testing.T) {
	moving := errMoving(t)
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		r.fails = func(context.Context, string) error { return moving }
		addSpare(q, time.Hour, "moves")
		synctest.Wait()
		r.end()
		<-q.Settled()
		n := len(r.sent)
		addSpare(q, time.Hour, "late")
		time.Sleep(time.Minute)
		if len(r.sent) != n {
			t.Errorf("after the end were sent: %q", r.sent[n:])
		}
	})
}
