package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Option returns the client options that fit this server, and are those that
// relock is to be run with.
func (s *Server) Option() rueidis.ClientOption {
	o := option(s.Addr)
	// miniredis would be taken for a cluster of one node.
	o.ForceSingleClient = true
	if s.bubble != nil {
		o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return s.bubble.dial()
		}
	}
	return o
}

// The tests make thousands of connections. So each one's two buffers, and its queue of commands
// (2^queue), are much smaller than by default: half a MiB each, and 1024 commands.
const (
	buffers = 8 << 10
	queue   = 8
)

// option returns the settings that all clients share.
func option(addrs ...string) rueidis.ClientOption {
	return rueidis.ClientOption{
		ReadBufferEachConn:  buffers,
		WriteBufferEachConn: buffers,
		RingScaleEachConn:   queue,
		InitAddress:         addrs,
		AlwaysPipelining:    true,
		PipelineMultiplex:   -1,
		DisableCache:        true,
	}
}

// Client returns a new client of the server, closed when the test ends. Each
// mod may change the options before it is made.
func (s *Server) Client(tb testing.TB, mods ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	return newClient(tb, s.Option(), mods)
}

func newClient(tb testing.TB, o rueidis.ClientOption, mods []func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	for _, mod := range mods {
		mod(&o)
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		tb.Fatalf("new client of %v: %v", o.InitAddress, err)
	}
	tb.Cleanup(c.Close)
	return c
}

// adminTimeout bounds the commands of [Server.Do], which may meet a server that
// has been paused.
const adminTimeout = 10 * time.Second

// Do sends one command over a separate connection and returns its result, or
// the error of not reaching the server. It waits 10 seconds at most and never
// sends the command twice.
func (s *Server) Do(tb testing.TB, args ...string) rueidis.RedisResult {
	tb.Helper()
	c, err := s.adminClient()
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	// Not the test's context: Do is also used in cleanups.
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	return c.Do(ctx, c.B().Arbitrary(args...).Build())
}

func (s *Server) adminClient() (rueidis.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil {
		o := s.Option()
		o.DisableRetry = true
		c, err := rueidis.NewClient(o)
		if err != nil {
			return nil, err
		}
		s.admin = c
	}
	return s.admin, nil
}

// closeAdmin closes the client of Do. s.mu is held.
func (s *Server) closeAdmin() {
	if s.admin != nil {
		s.admin.Close()
		s.admin = nil
	}
}
