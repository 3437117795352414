package line_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/internal/test/slownet"
	"relock/rlock"
)

// farDial makes a session to whose server a round trip takes that long, also on the made-up clock of a bubble.
func farDial(t *testing.T, s *redistest.Server, trip time.Duration, cfg rlock.Config) *rlock.Session {
	t.Helper()
	opt := s.Option()
	var passes sync.WaitGroup
	t.Cleanup(passes.Wait) // behind the session's Close
	if near := opt.DialCtxFn; near == nil {
		opt.InitAddress = []string{slownet.New(t, opt.InitAddress[0], trip).Addr()}
	} else {
		opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			server, err := near(ctx, addr, d, c)
			if err != nil {
				return nil, err
			}
			client, here := net.Pipe()
			passes.Go(func() { farPass(server, here, trip/2) })
			passes.Go(func() { farPass(here, server, trip/2) })
			return client, nil
		}
	}
	ses, err := rlock.Dial(context.Background(), opt, cfg)
	must(t, err)
	t.Cleanup(func() { must(t, ses.Close()) })
	return ses
}

// farPass passes on what comes, so much later, until one of the two ends is closed.
func farPass(from, to net.Conn, delay time.Duration) {
	type parcel struct {
		due   time.Time
		bytes []byte
	}
	way := make(chan parcel, 1<<16)
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() {
		defer to.Close()
		for p := range way {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.bytes)
		}
	})
	defer close(way)
	defer from.Close()
	for buf := make([]byte, 16<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		way <- parcel{time.Now().Add(delay), bytes.Clone(buf[:n])}
	}
}
