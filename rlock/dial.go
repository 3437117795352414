package rlock

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/engine"
	"relock/internal/script"
)

// connTimeout is after how long without an answer, also to rueidis's own PING, a connection
// counts as dead. rueidis's default of 10 s would let waiters miss messages for as long, and
// is a third of the default lease.
const connTimeout = 3 * time.Second

// Dial is [NewSession] with a client of its own, built from opt with the settings that locks
// run best with: pipelining always (so that an ending context is heeded and leaves the
// connection open), one connection to a node, no client-side cache, no ConnLifetime. A
// connection counts as dead when it was silent for 3 s, unless opt has a ConnWriteTimeout.
//
// Dial blocks until the session is ready or ctx ends. Errors: those of NewSession, and the
// client's when no server can be reached.
func Dial(ctx context.Context, opt rueidis.ClientOption, cfg Config) (*Session, error) {
	if ctx == nil {
		return nil, fmt.Errorf("dial: %w: ctx is nil; use context.Background()", ErrArgument)
	}
	if len(opt.InitAddress) == 0 {
		return nil, fmt.Errorf("dial: %w: InitAddress is empty; it must name a server", ErrConfig)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	checked, err := cfg.engine().WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	opt.AlwaysPipelining = true
	opt.DisableAutoPipelining = false
	opt.PipelineMultiplex = -1
	opt.DisableCache = true
	opt.ConnLifetime = 0
	if opt.ConnWriteTimeout == 0 {
		opt.ConnWriteTimeout = connTimeout
	}
	dialing, done := context.WithCancel(ctx)
	conn := new(script.Connection)
	opt.DialCtxFn = dialWithin(dialing, opt, conn)
	client, err := rueidis.NewClient(opt)
	done()
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return nil, fmt.Errorf("dial: %w", err)
	}
	s, err := engine.New(ctx, client, checked, engine.Options{Connection: conn, OwnsClient: true})
	if err != nil {
		client.Close()
		return nil, err
	}
	return (*Session)(s), nil
}

// dialWithin returns opt's way of dialling, except that what is dialled while ctx lives ends
// with it: rueidis.NewClient takes no context. Dial ends ctx afterwards, so connections that
// are made later are their own. A later one means that the former was lost, so it is
// told to conn.
func dialWithin(ctx context.Context, opt rueidis.ClientOption, conn *script.Connection) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	given, old := opt.DialCtxFn, opt.DialFn
	return func(own context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		if ctx.Err() == nil {
			both, cancel := context.WithCancel(own)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			own = both
		} else {
			conn.Redialled()
		}
		switch {
		case given != nil:
			return given(own, addr, d, tc)
		case old != nil:
			return old(addr, d, tc)
		case tc != nil:
			return (&tls.Dialer{NetDialer: d, Config: tc}).DialContext(own, "tcp", addr)
		default:
			return d.DialContext(own, "tcp", addr)
		}
	}
}
