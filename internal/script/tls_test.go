package script_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/script"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// The tests of this file are those of a direct connection that speaks TLS. What they count, hold and cut are
// the bytes on the wire. The other connection does not speak it.

// secured is a server that speaks TLS too.
type secured struct {
	*redistest.Server
	addr   string
	cfg    *tls.Config
	shakes atomic.Int32 // handshakes that have succeeded
}

func secure(t *testing.T, s *redistest.Server, version uint16) *secured {
	t.Helper()
	a := redistest.NewAuthority(t)
	x := &secured{Server: s, addr: s.ServeTLS(t, redistest.TLS{Authority: a, Version: version}), cfg: a.Client()}
	x.cfg.ServerName = "localhost"
	return x
}

// runner returns a Runner whose direct connection goes through a relay.
func (x *secured) runner(t *testing.T, timeout time.Duration) (*script.Runner, *relay) {
	t.Helper()
	re := newRelay(t, x.addr)
	opt := x.Option()
	opt.ConnWriteTimeout = timeout
	return runnerBy(t, x.Server, opt, func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		socket, err := re.dial(ctx, addr, d, nil)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(socket, x.cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, err
		}
		x.shakes.Add(1)
		return conn, nil
	}), re
}

// clients returns the ids of the connections that speak TLS.
func (x *secured) clients(t *testing.T) (ids []string) {
	t.Helper()
	list, err := x.Do(t, "CLIENT", "LIST").ToString()
	locktest.Must(t, err)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " laddr="+x.addr+" ") {
			_, id, _ := strings.Cut(line, "id=") // the first line may begin with "txt:"
			id, _, _ = strings.Cut(id, " ")
			ids = append(ids, id)
		}
	}
	return ids
}

// versions runs fn with each version of TLS, on servers of their own; with -short, with the latest.
func versions(t *testing.T, fn func(t *testing.T, x *secured)) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if testing.Short() && version != tls.VersionTLS13 {
			continue
		}
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			fn(t, secure(t, redistest.Real(t), version))
		})
	}
}

// wantDirect runs commands until one has gone over the direct connection.
func wantDirect(t *testing.T, r *script.Runner, re *relay) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "a command over the direct connection", func() bool {
		before := re.count(toServer)
		ready := r.HasDirect()
		locktest.Must(t, r.Run(t.Context(), appending("x")).Error())
		return ready && r.HasDirect() && re.count(toServer) > before
	})
}

// The connection ends within a record, of a command or of a reply, or between two: the outcome is unknown,
// the command is executed once, or not if it was not whole, and the next one goes over the other connection.
func TestTLSEndsWithinARecord(t *testing.T) {
	versions(t, func(t *testing.T, x *secured) {
		r, re := x.runner(t, 30*time.Second)
		command, reply := re.count(toServer), re.count(toClient)
		locktest.Must(t, r.Run(t.Context(), appending("first")).Error())
		command, reply = re.count(toServer)-command, re.count(toClient)-reply
		if command == 0 || reply == 0 {
			t.Fatal("the command did not go over the direct connection")
		}
		for _, at := range []int{0, 1, 5, command / 2, command - 1, command, command + 1, command + 5, command + reply - 1} {
			locktest.Must(t, x.Do(t, "DEL", "x").Error())
			r, re := x.runner(t, 30*time.Second)
			want := []string{"second"}
			if at < command {
				re.cut(toServer, at)
			} else {
				re.cut(toClient, at-command)
				want = []string{"first", "second"}
			}
			err := r.Run(t.Context(), appending("first")).Error()
			if err == nil || script.Classify(err) != script.Unknown {
				t.Errorf("cut after %d bytes of %d and %d: the error is %v", at, command, reply, err)
			}
			locktest.Must(t, r.Run(t.Context(), appending("second")).Error())
			wantExecuted(t, x.Server, want...)
		}
	})
}

// A context ends when a part of the reply's record has come: the call ends at once, and what is sent next
// waits for the rest, or for a while if there comes none.
func TestTLSIsLeftWithinARecord(t *testing.T) {
	versions(t, func(t *testing.T, x *secured) {
		for _, at := range []int{0, 1, 5, 10} {
			for _, comes := range []bool{true, false} {
				if !comes && (testing.Short() || at == 1) {
					continue // it takes its time
				}
				r, re := x.runner(t, 30*time.Second)
				locktest.Must(t, x.Do(t, "DEL", "x").Error())
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
				locktest.Must(t, locktest.Get(t, goRun(t.Context(), r, "second"), 10*time.Second, "the next call"))
				wantExecuted(t, x.Server, "first", "second")
				letGo()
			}
		}
	})
}

// Neither the end of a context nor that of the time for an answer leaves something in a socket that is sent
// later, while TLS says farewell: Redis would execute it after what was sent since.
func TestTLSSendsNothingBehindItsEnd(t *testing.T) {
	const fits = sendBuffer / 2 // in the buffer of the client's socket; the relay takes less
	t.Parallel()
	for name, c := range map[string]struct {
		size  int
		timed bool // no answer comes in time; else the context ends
	}{
		"context": {fits, false}, "context, torn": {64 * fits, false},
		"time": {fits, true}, "time, torn": {64 * fits, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.timed || c.size == fits {
				redistest.SkipShort(t)
			}
			versions(t, func(t *testing.T, x *secured) {
				timeout := 30 * time.Second
				if c.timed {
					timeout = 2 * time.Second // also for what is answered
				}
				r, re := x.runner(t, timeout)
				taken, end, read := re.last(), re.end(), x.clients(t)
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
				if c.size != fits && r.Left() {
					t.Error("a command that is not whole holds up others")
				}
				wantFree(t, r)
				locktest.Must(t, r.Run(t.Context(), appending("second")).Error())
				letGo()
				locktest.Get(t, taken, 10*time.Second, "the end of what was sent")
				redistest.Eventually(t, 10*time.Second, "the server to have read it", func() bool {
					return !slices.Contains(x.clients(t), read[0])
				})
				wantExecuted(t, x.Server, "second")
			})
		})
	}
}
