package rlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// dialError is the error of a Dial whose client could not be made. A server that answers, but
// to TLS only or not to TLS, is told apart: without that the error is "EOF" or a timeout.
func dialError(ctx context.Context, opt rueidis.ClientOption, err error) error {
	cfg, option := opt.TLSConfig, "ClientOption.TLSConfig"
	if opt.Sentinel.MasterSet != "" { // the addresses are those of Sentinels
		cfg, option = opt.Sentinel.TLSConfig, "ClientOption.Sentinel.TLSConfig"
	}
	_, refused := rueidis.IsRedisErr(err)
	for _, addr := range opt.InitAddress {
		encrypted, asks, ok := speaksTLS(ctx, opt, addr)
		switch {
		case !ok:
		case encrypted && cfg == nil:
			return fmt.Errorf("%w: the server at %s speaks TLS only; set %s: %w", ErrConfig, addr, option, err)
		case !encrypted && cfg != nil:
			return fmt.Errorf("%w: the server at %s does not speak TLS; leave %s out, or give its TLS port: %w", ErrConfig, addr, option, err)
		case asks && !refused && len(cfg.Certificates) == 0 && cfg.GetClientCertificate == nil: // it may do without one
			err = fmt.Errorf("the server at %s asks for a certificate of the client, and %s has none: %w", addr, option, err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", ctx.Err(), ErrUnavailable, err)
	case errors.Is(err, rueidis.ErrNoCache) && !script.Passes(err): // its word for any such refusal; nothing here is cached
		return fmt.Errorf("%w: the server refuses a CLIENT command that ClientOption asks for; leave that option out, or allow the command: %w", ErrConfig, err)
	case script.Unavailable(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if refused {
		return fmt.Errorf("%w: the server refuses what ClientOption asks for: %w", ErrConfig, err)
	}
	return err
}

// tlsTimeout bounds the question whether a server speaks TLS. Tests set it.
var tlsTimeout = 500 * time.Millisecond

// speaksTLS asks a server whether it answers a TLS greeting, or else a plain PING. ok is false
// if it does neither; asks says that it wants a certificate of the client. Dial may ask although its ctx
// has just ended: that may well be why.
func speaksTLS(ctx context.Context, opt rueidis.ClientOption, addr string) (encrypted, asks, ok bool) {
	if opt.DialCtxFn != nil && opt.DialFn != nil {
		return false, false, false
	}
	ask := func(talk func(ctx context.Context, conn net.Conn) bool) bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tlsTimeout)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(tlsTimeout))
		return talk(ctx, conn)
	}
	plain := ask(func(_ context.Context, conn net.Conn) bool {
		first := make([]byte, 1)
		_, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		if err == nil {
			_, err = conn.Read(first)
		}
		return err == nil && (first[0] == '+' || first[0] == '-')
	})
	if plain {
		return false, false, true
	}
	encrypted = ask(func(ctx context.Context, conn net.Conn) bool {
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

// redacted returns a URL without its password.
func redacted(addr string) string {
	if u, err := url.Parse(addr); err == nil {
		return u.Redacted()
	}
	return "(not shown)"
}
