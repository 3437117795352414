package script_test

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"relock/internal/script"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// straight is a script.DialFunc that leads where it is told.
func straight(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return d.DialContext(ctx, "tcp", addr)
}

// Redis refuses a script, by its name or when it is sent whole: the error says so, nothing is executed, and
// the next call is.
func TestDirectIsRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, step := range []string{"EVALSHA", "EVAL"} {
			for reply, want := range map[string]script.Outcome{
				"BUSY Redis is busy running a script": script.NotRun, "LOADING Redis is loading": script.NotRun,
				"READONLY You can't write": script.NotRun, "MASTERDOWN Link with MASTER is down": script.NotRun,
				"OOM command not allowed": script.NotRun, "MISCONF Errors writing": script.NotRun,
				"NOPERM this user has no permissions": script.Refused, "WRONGTYPE Operation": script.Refused,
			} {
				locktest.Must(t, s.Do(t, "DEL", "x").Error())
				r, p := runner(t, s)
				if step == "EVAL" {
					locktest.Must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
				}
				p.RefuseCommand(step, reply)
				err := r.Run(t.Context(), appending("first")).Error()
				if err == nil || script.Classify(err) != want || script.Text(err) != reply {
					t.Errorf("%s: %s: the error is %v", step, reply, err)
				}
				p.RefuseCommand(step, "")
				locktest.Must(t, r.Run(t.Context(), appending("second")).Error())
				wantExecuted(t, s, "second")
			}
		}
	})
}

// A context ends before the call, or before Redis has said that it does not know the script: the script is
// not sent, nor sent whole.
func TestDirectSendsNothingForAnEndedContext(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		r, p := runner(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.Reset()
		if err := r.Run(ctx, appending("first")).Error(); !errors.Is(err, context.Canceled) || !r.HasDirect() {
			t.Errorf("ended before: the error is %v, the connection stands: %v", err, r.HasDirect())
		}
		locktest.Must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
		seen, release := p.HoldReply(faulttest.Is("EVALSHA"))
		ctx, cancel = context.WithCancel(t.Context())
		first := goRun(ctx, r, "first")
		locktest.Get(t, seen, 10*time.Second, "the reply")
		cancel()
		if err := locktest.Get(t, first, 10*time.Second, "the call"); !errors.Is(err, context.Canceled) {
			t.Errorf("ended between the two: the error is %v", err)
		}
		release()
		redistest.Eventually(t, 10*time.Second, "the end of the first", func() bool { return !r.Left() })
		if n := p.Count("EVALSHA"); n != 1 || p.Count("EVAL") != 0 {
			t.Errorf("%d EVALSHA, %d EVAL", n, p.Count("EVAL"))
		}
		locktest.Must(t, r.Run(t.Context(), appending("second")).Error())
		wantExecuted(t, s, "second")
	})
}

// What a server says unasked, as an answer that comes late, is not taken for the answer to a command.
func TestDirectTakesNoAnswerThatCameBefore(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, text := range []string{":7\r\n", ":", "-ERR late\r\n"} {
			locktest.Must(t, s.Do(t, "DEL", "x").Error())
			r, re := relayed(t, s, 3*time.Second)
			re.say(t, text)
			redistest.Eventually(t, 10*time.Second, "the connection to be left", func() bool {
				locktest.Must(t, s.Do(t, "DEL", "x").Error())
				if n, err := r.Run(t.Context(), appending("x")).AsInt64(); n != 1 || err != nil {
					t.Fatalf("%q was said: the reply is %d, %v", text, n, err)
				}
				return !r.HasDirect()
			})
		}
	})
}

// A server answers nothing for longer than what was given up holds others back: it executes that before what
// came later nonetheless, since it has got both.
func TestDirectKeepsTheOrderOfAServerThatStalls(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	p := faulttest.New(t, s.Addr)
	r := runnerBy(t, s, p.Option(s.Option()), func(ctx context.Context, _ string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		return straight(ctx, s.Addr, d, tc)
	})
	s.Pause()
	resume := sync.OnceFunc(s.Resume)
	defer resume()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Run(ctx, appending("first")).Error(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v", err)
	}
	redistest.Eventually(t, 10*time.Second, "the patience to end", func() bool { return !r.Left() })
	second := goRun(t.Context(), r, "second")
	redistest.Eventually(t, 10*time.Second, "the second command", func() bool { return p.Count("EVALSHA") > 0 })
	resume()
	locktest.Must(t, locktest.Get(t, second, 20*time.Second, "the second command"))
	wantExecuted(t, s, "first", "second")
}

// Contexts end at any time: what a call says of its command is true, and no command is executed behind a
// later one.
func TestDirectRandomEnds(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for i := range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				r, key := runnerBy(t, s, s.Option(), straight), "x"+strconv.Itoa(i)
				randomEnds(t, s, r, key, redistest.Rounds(20))
			})
		}
	})
}

// Close at any time ends a call at once, with its answer or with an error that says that the outcome is
// unknown.
func TestDirectRandomClose(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for n := range redistest.Rounds(50) {
			r, what := runnerBy(t, s, s.Option(), straight), strconv.Itoa(n)
			first := goRun(t.Context(), r, what)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			r.Close()
			err := locktest.Get(t, first, 10*time.Second, "the call")
			if err != nil && script.Classify(err) != script.Unknown {
				t.Errorf("the error is %v", err)
			}
			if got := executed(t, s); err == nil && !slices.Contains(got, what) {
				t.Errorf("executed %q, not %q", got, what)
			}
			if r.HasDirect() {
				t.Error("the connection stands")
			}
		}
	})
}

// randomEnds runs commands on key whose contexts end at any time, each with one behind it.
func randomEnds(t *testing.T, s *redistest.Server, r *script.Runner, key string, rounds int) {
	t.Helper()
	run := func(ctx context.Context, what string) error {
		return r.Run(ctx, script.Command{Script: appendScript, Keys: []string{key}, Args: []string{what}}).Error()
	}
	for n := range rounds {
		redistest.Eventually(t, 10*time.Second, "a direct connection", func() bool {
			locktest.Must(t, run(t.Context(), "one"))
			return r.HasDirect()
		})
		locktest.Must(t, s.Do(t, "DEL", key).Error())
		first, second := "first "+strconv.Itoa(n), "second "+strconv.Itoa(n)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(1000))*time.Microsecond)
		err := run(ctx, first)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		locktest.Must(t, run(t.Context(), second))
		got, errList := s.Do(t, "LRANGE", key, "0", "-1").AsStrSlice()
		locktest.Must(t, errList)
		want := []string{first, second}
		if err != nil && len(got) == 1 {
			want = want[1:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("executed %q behind %v", got, err)
		}
	}
}
