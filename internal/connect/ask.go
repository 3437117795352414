package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// Patience bounds the question whether a server speaks TLS. Tests set it.
var Patience = 500 * time.Millisecond

// speaksTLS asks a server whether it answers a TLS greeting, or else a plain PING. ok is false
// if it does neither, or if opt has a way of dialling of its own, which may lead elsewhere or speak TLS itself; asks
// says that it wants a certificate of the client. A caller may ask although its ctx has just ended: that may well be why.
func speaksTLS(ctx context.Context, opt rueidis.ClientOption, addr string) (encrypted, asks, ok bool) {
	if opt.DialCtxFn != nil || opt.DialFn != nil {
		return false, false, false
	}
	ctx = context.WithoutCancel(ctx)
	if speaksPlain(ctx, addr) {
		return false, false, true
	}
	encrypted = ask(ctx, addr, func(ctx context.Context, conn net.Conn) bool {
		// Nothing is sent over it, so it does not matter who the server is.
		err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				asks = true
				return new(tls.Certificate), nil
			}}).HandshakeContext(ctx)
		var op *net.OpError
		return err == nil || errors.As(err, &op) && op.Op == "remote error" // which only TLS has
	})
	return encrypted, asks, encrypted
}

// speaksPlain asks a server whether it answers without TLS.
func speaksPlain(ctx context.Context, addr string) bool {
	return ask(ctx, addr, func(_ context.Context, conn net.Conn) bool {
		first := make([]byte, 1)
		_, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		if err == nil {
			_, err = conn.Read(first)
		}
		return err == nil && (first[0] == '+' || first[0] == '-')
	})
}

// ask connects to a server and talks to it, within Patience.
func ask(ctx context.Context, addr string, talk func(ctx context.Context, conn net.Conn) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return talk(ctx, conn)
}
