package script_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/script"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// relayed returns a Runner whose direct connection goes through a relay, and its other one does not.
func relayed(t *testing.T, s *redistest.Server, timeout time.Duration) (*script.Runner, *relay) {
	t.Helper()
	re := newRelay(t, s.Addr)
	opt := s.Option()
	opt.ConnWriteTimeout = timeout
	return runnerBy(t, s, opt, re.dial), re
}

// executed returns what appending has left.
func executed(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	list, err := s.Do(t, "LRANGE", "x", "0", "-1").AsStrSlice()
	locktest.Must(t, err)
	return list
}

func wantExecuted(t *testing.T, s *redistest.Server, want ...string) {
	t.Helper()
	if got := executed(t, s); !slices.Equal(got, want) {
		t.Errorf("executed %.200q, want %q", got, want)
	}
}

// goRun runs a command in a goroutine.
func goRun(ctx context.Context, r *script.Runner, what string) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, appending(what)).Error() }()
	return ended
}

// The connection ends at each byte of a reply, or of a command: the outcome is unknown, the command is
// executed once, or not if it was not whole, and the next one goes over the other connection.
func TestDirectEndsAtEachByte(t *testing.T) {
	s := redistest.Real(t)
	r, re := relayed(t, s, 3*time.Second)
	command, reply := re.count(toServer), re.count(toClient)
	locktest.Must(t, r.Run(t.Context(), appending("first")).Error())
	command, reply = re.count(toServer)-command, re.count(toClient)-reply
	if command == 0 || reply != len(":1\r\n") {
		t.Fatal("the command did not go over the direct connection")
	}
	for at := range command + reply {
		locktest.Must(t, s.Do(t, "DEL", "x").Error())
		r, re := relayed(t, s, 3*time.Second)
		want := []string{"second"}
		if at < command {
			re.cut(toServer, at)
		} else {
			re.cut(toClient, at-command)
			want = []string{"first", "second"}
		}
		err := r.Run(t.Context(), appending("first")).Error()
		if err == nil || script.Classify(err) != script.Unknown {
			t.Errorf("cut after %d bytes: the error is %v", at, err)
		}
		locktest.Must(t, r.Run(t.Context(), appending("second")).Error())
		wantExecuted(t, s, want...)
	}
}

// A context ends when a part of the reply has come: the call ends at once, and what is sent next waits for
// the rest, or for a while if there comes none.
func TestDirectIsLeftAtEachByteOfAReply(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for at := range len(":1\r\n") {
			for _, comes := range []bool{true, false} {
				r, re := relayed(t, s, 30*time.Second)
				locktest.Must(t, s.Do(t, "DEL", "x").Error())
				reached, letGo := re.hold(toClient, at)
				ctx, cancel := context.WithCancel(t.Context())
				first := goRun(ctx, r, "first")
				locktest.Get(t, reached, 10*time.Second, "the reply")
				cancel()
				if err := locktest.Get(t, first, 10*time.Second, "the call"); !errors.Is(err, context.Canceled) {
					t.Fatalf("after %d bytes: the error is %v", at, err)
				}
				if comes {
					letGo()
				}
				if err := locktest.Get(t, goRun(t.Context(), r, "second"), 10*time.Second, "the next call"); err != nil {
					t.Fatal(err)
				}
				wantExecuted(t, s, "first", "second")
			}
		}
	})
}

// Neither the end of a context nor that of the time for an answer leaves something behind that is sent
// later: Redis would execute it after what was sent since.
func TestDirectSendsNothingBehindItsEnd(t *testing.T) {
	t.Parallel()
	const fits = sendBuffer * 3 / 4 // in the buffer of the client's socket; the relay takes less
	for name, c := range map[string]struct {
		size  int
		timed bool // no answer comes in time; else the context ends
		left  bool // the command may be executed, as far as is known
	}{
		"context":       {fits, false, true},
		"context, torn": {64 * fits, false, false},
		"time":          {fits, true, false},
		"time, torn":    {64 * fits, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			timeout := 30 * time.Second
			if c.timed {
				timeout = time.Second // also for what is answered
			}
			r, re := relayed(t, s, timeout)
			taken, end := re.last(), re.end()
			reached, letGo := re.hold(toServer, 0)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := goRun(ctx, r, strings.Repeat("x", c.size))
			locktest.Get(t, reached, 10*time.Second, "the command")
			if c.size == fits {
				redistest.Eventually(t, 10*time.Second, "the end of the write", end.reads.Load)
			}
			if !c.timed {
				cancel()
			}
			if err := locktest.Get(t, first, 10*time.Second, "the call"); err == nil || !c.timed && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if !c.left && r.Left() {
				t.Error("a command that is not whole holds up others")
			}
			wantFree(t, r)
			locktest.Must(t, r.Run(t.Context(), appending("second")).Error())
			if n := end.closes.Load(); n != 1 {
				t.Errorf("the connection was closed %d times", n)
			}
			letGo()
			locktest.Get(t, taken, 10*time.Second, "the end of what was sent")
			wantExecuted(t, s, "second")
		})
	}
}

// The time for the last answer passes while nothing is sent: the connection serves on.
func TestDirectServesAfterAnIdleTime(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const timeout = time.Second
		r, re := relayed(t, s, timeout)
		for i := range 2 {
			time.Sleep(time.Duration(i) * timeout * 3 / 2) // the time is what this is about
			before := re.count(toServer)
			locktest.Must(t, r.Run(t.Context(), appending("x")).Error())
			if re.count(toServer) == before {
				t.Fatal("the command did not go over the direct connection")
			}
		}
		if n := re.dials(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}
