package faulttest

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// Of starts a proxy for the server that opt leads to, and returns options that lead to the proxy.
// Where opt has a way of its own to dial, as on the made-up clock of a synctest bubble, the proxy
// listens on no address, and its connections are in memory.
func Of(tb testing.TB, opt rueidis.ClientOption) (*Proxy, rueidis.ClientOption) {
	tb.Helper()
	if opt.DialCtxFn == nil {
		p := New(tb, opt.InitAddress[0])
		return p, p.Option(opt)
	}
	dial := opt.DialCtxFn
	p := newProxy(tb, "memory", func() (net.Conn, error) {
		return dial(context.Background(), opt.InitAddress[0], new(net.Dialer), nil)
	})
	tb.Cleanup(p.close)
	return p, p.Option(opt)
}

// Option returns opt, leading to the proxy in place of its server.
func (p *Proxy) Option(opt rueidis.ClientOption) rueidis.ClientOption {
	if p.ln != nil {
		if opt.DialCtxFn != nil {
			p.tb.Error("the options dial without the proxy")
		}
		opt.InitAddress = []string{p.Addr()}
		return opt
	}
	opt.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		client, here := net.Pipe()
		p.admit(&buffered{Conn: here, wake: make(chan struct{}, 1)})
		return client, nil
	}
	return opt
}

// buffered is an end of a pipe from which everything is read at once, as a network would take it:
// the other end never waits for a reader.
type buffered struct {
	net.Conn
	start sync.Once
	wake  chan struct{} // of size 1: something was added

	mu  sync.Mutex // guards what follows
	buf bytes.Buffer
	err error // of the reads, behind buf
}

func (b *buffered) Read(p []byte) (int, error) {
	b.start.Do(func() { go b.fill() })
	for {
		b.mu.Lock()
		n, err := b.buf.Len(), b.err
		if n > 0 {
			n, err = b.buf.Read(p)
		}
		b.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		<-b.wake
	}
}

// fill reads until the end. It ends when one of the two ends is closed.
func (b *buffered) fill() {
	p := make([]byte, 4<<10)
	for {
		n, err := b.Conn.Read(p)
		b.mu.Lock()
		b.buf.Write(p[:n])
		b.err = err
		b.mu.Unlock()
		select {
		case b.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}
