package slownet

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Of returns options that lead to the server of opt over a network on which a round trip takes that long. Where opt
// has a way of its own to dial, as on the made-up clock of a synctest bubble, the network is in memory.
func Of(tb testing.TB, opt rueidis.ClientOption, roundTrip time.Duration) rueidis.ClientOption {
	tb.Helper()
	near := opt.DialCtxFn
	if near == nil {
		opt.InitAddress = []string{New(tb, opt.InitAddress[0], roundTrip).Addr()}
		return opt
	}
	var passes sync.WaitGroup
	tb.Cleanup(passes.Wait) // behind the Close of what uses it
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		server, err := near(ctx, addr, d, c)
		if err != nil {
			return nil, err
		}
		client, here := net.Pipe()
		passes.Go(func() { pass(server, here, roundTrip/2) })
		passes.Go(func() { pass(here, server, roundTrip/2) })
		return client, nil
	}
	return opt
}

// pass passes on what comes, so much later, until one of the two ends is closed.
func pass(from, to net.Conn, delay time.Duration) {
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
