package redis_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/redis"
	"relock/internal/script"
)

var (
	errDial    = &net.OpError{Op: "dial", Err: errors.New("no server")} // the command has not run
	errRefused = script.ErrShape                                        // as one that trying again does not help against
)

// An answering Redis answers commands, which it knows by their first key. It is used in one bubble.
type answering struct {
	mu    sync.Mutex
	sent  [][]string                                  // the pipelines
	fails func(ctx context.Context, key string) error // nil: it answers everything
	end   context.CancelFunc
}

// test runs fn with a Cleanup on a made-up clock.
func test(t *testing.T, fn func(t *testing.T, q *redis.Cleanup, r *answering)) {
	synctest.Test(t, func(t *testing.T) {
		var background life.Group
		ctx, end := context.WithCancel(context.Background())
		r, start := &answering{end: end}, time.Now()
		env := life.Env{Context: ctx, Background: &background, Log: slog.New(slog.DiscardHandler),
			Clock: func() time.Duration { return time.Since(start) }}
		fn(t, redis.NewCleanup(env, time.Second, r.send), r)
		end()
		background.Wait()
	})
}

func (r *answering) send(ctx context.Context, cmds []script.Command) (results []rueidis.RedisResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for _, c := range cmds {
		keys = append(keys, c.Keys[0])
		var err error
		if r.fails != nil {
			err = r.fails(ctx, c.Keys[0])
		}
		results = append(results, result(err))
	}
	r.sent = append(r.sent, keys)
	return results
}

// result is an answer, or err.
func result(err error) rueidis.RedisResult {
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return rueidis.RedisResult{}
}

// job returns a job of a command for each key, and how it ended: told in done, as soon as gone is
// closed.
func job(until time.Duration, keys ...string) (j redis.Job, done chan error) {
	done = make(chan error, 1)
	j = redis.Job{Until: until, Gone: make(chan struct{}), Done: func(err error) { done <- err }}
	for _, k := range keys {
		j.Cmds = append(j.Cmds, script.Command{Keys: []string{k}})
	}
	return j, done
}

// isGone reports whether Gone of the job is closed.
func isGone(j redis.Job) bool {
	select {
	case <-j.Gone:
		return true
	default:
		return false
	}
}

// A job counts as unconfirmed while it is on its way, and while it waits for that: Close may have to say so
// before the answer is there.
func TestWhatIsOnItsWayIsUnconfirmed(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		answer := make(chan struct{})
		r.fails = func(context.Context, string) error {
			<-answer
			return nil
		}
		first, _ := job(time.Hour, "a")
		q.Add(first)
		synctest.Wait()
		second, _ := job(time.Hour, "b")
		q.Add(second)
		if n := q.Unconfirmed(); n != 2 {
			t.Errorf("%d jobs are unconfirmed, want the one on its way and the one behind it", n)
		}
		close(answer)
		<-q.Idle()
		if n := q.Unconfirmed(); n != 0 {
			t.Errorf("%d jobs are unconfirmed that were answered", n)
		}
	})
}

// What gets no answer is sent again, and only that, until Redis answers.
func TestUnansweredIsSentAgain(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		down := true
		r.fails = func(_ context.Context, key string) error {
			if down && key == "b" {
				return errDial
			}
			return nil
		}
		j, done := job(time.Hour, "a", "b")
		q.Add(j)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if n := q.Unconfirmed(); len(done) > 0 || isGone(j) || !q.Busy() || n != 1 {
			t.Errorf("the job is over, or %d are unconfirmed, though one of its commands has no answer", n)
		}
		r.mu.Lock()
		down = false
		r.mu.Unlock()
		<-j.Gone
		if err := <-done; err != nil {
			t.Errorf("the job ended with %v, want nil", err)
		}
		<-q.Idle()
		if len(r.sent) < 3 || !slices.Equal(r.sent[0], []string{"a", "b"}) {
			t.Errorf("sent %v, want a and b, and b again until it is answered", r.sent)
		}
		for _, again := range r.sent[1:] {
			if !slices.Equal(again, []string{"b"}) {
				t.Errorf("sent again: %v, want b alone", again)
			}
		}
		if n := q.Unconfirmed(); n != 0 || q.Busy() {
			t.Errorf("%d jobs unconfirmed, busy: %v", n, q.Busy())
		}
	})
}

// Each job of a pipeline hears of its own commands, also behind one of which a part got no answer: else one that got
// none would pass for answered.
func TestJobBehindAPartlyAnsweredOne(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		answer := make(chan struct{})
		r.fails = func(_ context.Context, key string) error {
			if key == "first" {
				<-answer // the others come meanwhile, and have one pipeline
			} else if len(r.sent) < 2 && key != "b" {
				return errDial
			}
			return nil
		}
		first, _ := job(time.Hour, "first")
		q.Add(first)
		synctest.Wait()
		partly, _ := job(time.Hour, "a", "b")
		behind, done := job(time.Hour, "c")
		q.Add(partly)
		q.Add(behind)
		close(answer)
		if err := <-done; err != nil {
			t.Errorf("the job behind ended with %v, want nil", err)
		}
		<-q.Idle()
		if want := [][]string{{"first"}, {"a", "b", "c"}, {"a", "c"}}; !slices.EqualFunc(r.sent, want, slices.Equal) {
			t.Errorf("sent %v, want %v", r.sent, want)
		}
	})
}

// A job is given up when what it ends is over by itself, when Redis refuses it, and when the
// session ends: then it counts as unconfirmed, unless it is to spare, and Done gets the error.
func TestGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		until   time.Duration
		ends    time.Duration // of the session; 0: it does not
		atLeast time.Duration
		atMost  time.Duration
	}{
		"over":    {errDial, 10 * time.Second, 0, 10 * time.Second, 11 * time.Second},
		"refused": {errRefused, 10 * time.Second, 0, 0, 0},
		"closed":  {errDial, time.Hour, 5 * time.Second, 5 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
				r.fails = func(context.Context, string) error { return c.err }
				if c.ends > 0 {
					time.AfterFunc(c.ends, r.end)
				}
				j, done := job(c.until, "a")
				began := time.Now()
				q.Add(j)
				<-j.Gone
				if err := <-done; !errors.Is(err, c.err) {
					t.Errorf("the job ended with %v, want %v", err, c.err)
				}
				if took := time.Since(began); took < c.atLeast || took > c.atMost {
					t.Errorf("it was given up after %v, want %v to %v", took, c.atLeast, c.atMost)
				}
				if n := q.Unconfirmed(); n != 1 {
					t.Errorf("%d jobs are unconfirmed, want 1", n)
				}
				if q.Forgive(); q.Unconfirmed() != 0 {
					t.Error("it still counts after Forgive")
				}
				addSpare(q, c.until, "a")
				if <-q.Settled(); q.Unconfirmed() != 0 {
					t.Error("a spare job counts")
				}
			})
		})
	}
}

// A pipeline that failed with the context of another caller is sent again at once, the first time.
func TestAnothersContext(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		r.fails = func(context.Context, string) error {
			if len(r.sent) < 2 {
				return context.Canceled
			}
			return nil
		}
		j, _ := job(time.Hour, "a")
		began := time.Now()
		q.Add(j)
		<-j.Gone
		if took := time.Since(began); took == 0 || took > time.Second || len(r.sent) != 3 {
			t.Errorf("%d pipelines in %v, want two at once and one after a pause", len(r.sent), took)
		}
	})
}

// One pipeline takes a bounded number of jobs; all of them are done, in their order.
func TestManyJobs(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		for range 600 {
			j, _ := job(time.Hour, "a")
			q.Add(j)
		}
		<-q.Idle()
		var sizes []int
		sum := 0
		for _, keys := range r.sent {
			sizes = append(sizes, len(keys))
			sum += len(keys)
		}
		if sum != 600 || slices.Max(sizes) > 256 {
			t.Errorf("pipelines of %v commands, want 600 in all and at most 256 in each", sizes)
		}
	})
}

// What has nothing to send, or comes after the end of the session, is over at once; the latter is unconfirmed, unless it is to spare.
func TestNothingIsSent(t *testing.T) {
	test(t, func(t *testing.T, q *redis.Cleanup, r *answering) {
		j, done := job(time.Hour)
		if q.Add(j); !isGone(j) || q.Unconfirmed() != 0 {
			t.Error("a job without commands is not over at once, or counts as given up")
		}
		r.end()
		late, doneLate := job(time.Hour, "a")
		if q.Add(late); !isGone(late) || q.Unconfirmed() != 1 {
			t.Error("a job after the end is not over at once, or does not count as given up")
		}
		if addSpare(q, time.Hour, "a"); !isSettled(q) || q.Unconfirmed() != 1 {
			t.Error("a spare job after the end is not over at once, or counts as given up")
		}
		synctest.Wait()
		if len(done)+len(doneLate) > 0 || len(r.sent) > 0 {
			t.Error("Done was called, or something sent")
		}
		select {
		case <-q.Idle():
		default:
			t.Error("it is not idle")
		}
	})
}
