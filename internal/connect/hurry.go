package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// before is for how long a client may be in the making before its servers are asked whether they speak TLS.
const before = 250 * time.Millisecond

// errPlain is why a connection is given up that would not come about.
var errPlain = errors.New("it has answered without TLS")

// Hurry has the making of a client fail as soon as all servers that opt names have answered without TLS,
// although opt has them speak TLS. A redis-server takes a TLS greeting for the beginning of a line, and
// waits for the rest of that for as long as the client does, 5 s by default. The returned options are for the
// client, and stop must be called when that has been made or not. Options with a way of dialling of
// their own are left as they are: it may lead to other servers than those of that address.
func Hurry(ctx context.Context, opt rueidis.ClientOption) (hurried rueidis.ClientOption, stop func()) {
	if cfg, _ := new(Words).tls(&opt); cfg == nil || opt.DialCtxFn != nil || opt.DialFn != nil {
		return opt, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	plain, found := context.WithCancel(context.Background()) // never ends, unless they are
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(before)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		for _, addr := range opt.InitAddress {
			if plain, _ := speaksPlain(ctx, addr); !plain {
				return
			}
		}
		found()
	}()
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		if tc == nil { // beside Sentinels that speak TLS
			return d.DialContext(ctx, "tcp", addr)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(plain, cancel)()
		c, err := (&tls.Dialer{NetDialer: d, Config: tc}).DialContext(ctx, "tcp", addr)
		if err != nil && plain.Err() != nil {
			err = errPlain
		}
		return c, err
	}
	return opt, func() { cancel(); <-ended }
}
