package script_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/script"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var appendScript = script.New(`return redis.call('RPUSH', KEYS[1], ARGV[1])`)

func appending(s string) script.Command {
	return script.Command{Script: appendScript, Keys: []string{"x"}, Args: []string{s}}
}

// runner returns a Runner with a direct connection, both through one proxy.
func runner(t *testing.T, s *redistest.Server) (*script.Runner, *faulttest.Proxy) {
	t.Helper()
	p := faulttest.New(t, s.Addr)
	opt := s.Option()
	opt.InitAddress, opt.ConnWriteTimeout = []string{p.Addr()}, 3*time.Second
	return runnerBy(t, s, opt, func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", addr)
	}), p
}

// runnerBy returns a Runner whose direct connection is made by dial.
func runnerBy(t *testing.T, s *redistest.Server, opt rueidis.ClientOption, dial script.DialFunc) *script.Runner {
	t.Helper()
	locktest.Must(t, s.Do(t, "SCRIPT", "LOAD", appendScript.Source()).Error())
	opt.AlwaysPipelining = true
	client, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	conn := script.NewConnection()
	var background life.Group
	r := script.NewRunner(client, conn, &background)
	direct := script.NewDirect(conn, opt, dial)
	locktest.Get(t, r.UseDirect(direct, func(context.Context, rueidis.Client) bool { return true }), 10*time.Second, "the connection")
	t.Cleanup(func() {
		r.Close()
		client.Close()
		conn.Sever()
		background.Wait()
	})
	return r
}

// Whatever connection a command was given up on, one that is sent later is executed later.
func TestOrderIsKeptBehindWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	type sender = func(*script.Runner, context.Context, script.Command) rueidis.RedisResult
	for name, c := range map[string]struct {
		send      sender
		forgotten bool // the server does not know the script: it is sent again, whole
	}{
		"direct":       {(*script.Runner).Run, false},
		"direct whole": {(*script.Runner).Run, true},
		"pipelined": {func(r *script.Runner, ctx context.Context, c script.Command) rueidis.RedisResult {
			return r.Multi(ctx, []script.Command{c})[0]
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				r, p := runner(t, s)
				held := faulttest.HasArg("first")
				if c.forgotten {
					locktest.Must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
					held = faulttest.Is("EVAL")
				}
				seen, release := p.HoldRequest(held)
				ctx, cancel := context.WithCancel(t.Context())
				given := make(chan error, 1)
				go func() { given <- c.send(r, ctx, appending("first")).Error() }()
				locktest.Get(t, seen, 10*time.Second, "the command")
				cancel()
				if err := locktest.Get(t, given, 10*time.Second, "the call to end"); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				later := make(chan error, 1)
				go func() { later <- r.Run(t.Context(), appending("second")).Error() }()
				select {
				case err := <-later:
					t.Errorf("the second command was executed before the first: %v", err)
				case <-time.After(100 * time.Millisecond):
				}
				release()
				if err := locktest.Get(t, later, 10*time.Second, "the second command"); err != nil {
					t.Fatal(err)
				}
				if got, _ := s.Do(t, "LRANGE", "x", "0", "-1").AsStrSlice(); !slices.Equal(got, []string{"first", "second"}) {
					t.Errorf("executed in the order %q", got)
				}
			})
		})
	}
}

// A script that the server has forgotten is sent whole, over the direct connection too.
func TestDirectSendsAForgottenScriptWhole(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		r, p := runner(t, s)
		if err := s.Do(t, "SCRIPT", "FLUSH").Error(); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Run(t.Context(), appending("one")).AsInt64(); n != 1 || err != nil {
			t.Fatalf("%d elements, %v", n, err)
		}
		if n := p.Count("EVAL"); n != 1 {
			t.Errorf("%d EVAL", n)
		}
	})
}

// A reply that is lost is an error, and nothing is sent again.
func TestDirectSendsNothingTwice(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		r, p := runner(t, s)
		p.DropReply(faulttest.HasArg("one"))
		err := r.Run(t.Context(), appending("one")).Error()
		if err == nil || script.Classify(err) != script.Unknown {
			t.Errorf("the error is %v", err)
		}
		if n, err := s.Do(t, "LLEN", "x").AsInt64(); n != 1 || err != nil {
			t.Errorf("executed %d times, %v", n, err)
		}
	})
}
