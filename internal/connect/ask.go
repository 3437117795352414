package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Patience bounds the question whether a server speaks TLS. Tests set it.
var Patience = 500 * time.Millisecond

// speaking is what a server has answered.
type speaking struct {
	answers   bool // a greeting in TLS, or else a plain PING
	encrypted bool // it was the greeting
	asks      bool // for a certificate of the client
}

// speakTLS asks the servers at all addresses of opt at once, so that many that say nothing take no longer than one. None
// is asked if opt has a way of dialling of its own, which may lead elsewhere or speak TLS itself. A caller may ask
// although its ctx has just ended: that may well be why.
func speakTLS(ctx context.Context, opt rueidis.ClientOption) []speaking {
	found := make([]speaking, len(opt.InitAddress))
	if opt.DialCtxFn != nil || opt.DialFn != nil {
		return found
	}
	ctx = context.WithoutCancel(ctx)
	var all sync.WaitGroup
	for i, addr := range opt.InitAddress {
		all.Go(func() { found[i] = speaksTLS(ctx, addr) })
	}
	all.Wait()
	return found
}

// speaksTLS asks one of them. One that speaks TLS refuses a plain PING at once: of one that said nothing to that for all of
// Patience, as one that has stopped, nothing would be learned but later, and a Dial whose ctx has ended waits for it.
func speaksTLS(ctx context.Context, addr string) (s speaking) {
	plain, silent := speaksPlain(ctx, addr)
	if plain || silent {
		s.answers = plain
		return s
	}
	s.encrypted, _ = ask(ctx, addr, func(ctx context.Context, conn net.Conn) bool {
		// Nothing is sent over it, so it does not matter who the server is.
		err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				s.asks = true
				return new(tls.Certificate), nil
			}}).HandshakeContext(ctx)
		var op *net.OpError
		return err == nil || errors.As(err, &op) && op.Op == "remote error" // which only TLS has
	})
	s.answers = s.encrypted
	return s
}

// speaksPlain asks a server whether it answers without TLS, or is silent.
func speaksPlain(ctx context.Context, addr string) (plain, silent bool) {
	return ask(ctx, addr, func(_ context.Context, conn net.Conn) bool {
		first := make([]byte, 1)
		_, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		if err == nil {
			_, err = conn.Read(first)
		}
		return err == nil && (first[0] == '+' || first[0] == '-')
	})
}

// ask connects to a server and talks to it, within Patience; silent says that this was over before there was an answer.
func ask(ctx context.Context, addr string, talk func(ctx context.Context, conn net.Conn) bool) (yes, silent bool) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false, ctx.Err() != nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	yes = talk(ctx, conn)
	return yes, !yes && ctx.Err() != nil
}
