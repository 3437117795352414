package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A way of dialling of the caller's may lead elsewhere than the address, or speak TLS itself. So what listens at
// the address does not say why Dial fails, nor that it always will.
func TestTLSDialInAWayOfTheCallers(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	a := redistest.NewAuthority(t)
	x := secure(s, s.ServeTLS(t, redistest.TLS{Authority: a}), a.Client())
	own := x.opt.TLSConfig
	x.opt.TLSConfig = nil
	x.opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return (&tls.Dialer{NetDialer: d, Config: own}).DialContext(ctx, "tcp", addr)
	}
	x.dial(t, rlock.Config{})
	x.opt.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		return nil, errors.New("the tunnel is down")
	}
	_, err := rlock.Dial(within(t, 5*time.Second), x.opt, rlock.Config{})
	if !errors.Is(err, rlock.ErrUnavailable) || errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), "the tunnel is down") {
		t.Errorf("Dial: %v", err)
	}
}
