package rlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/connect"
	"relock/internal/engine"
	"relock/internal/redis"
	"relock/internal/script"
)

// connTimeout is after how long without an answer, also to rueidis's own PING, a connection
// counts as dead. rueidis's default of 10 s would let waiters miss messages for as long, and
// is a third of the default lease.
const connTimeout = 3 * time.Second

// The buffers of each connection. A command has a few hundred bytes and a reply less, so these hold what many
// goroutines send at a time; rueidis's default of half a MiB each made a session of 2.9 MB.
const (
	readBuffer  = 8 << 10
	writeBuffer = 32 << 10
)

// replicaConns is how many connections wait for replicas at a time: each waits a millisecond or so
// as long as the replicas are in step. rueidis's default is 1024.
const replicaConns = 32

// sentinelLook is how often the Sentinels are asked for the primary, beside what they tell by themselves. rueidis
// follows their messages alone by default, and a primary that goes on as a replica closes no connection: a session
// that missed the one message would stay with it for good.
const sentinelLook = 5 * time.Second

// Dial is [NewSession] with a client of its own, made of opt with the settings that locks run best
// with: docs/operations.md lists them. [Session.Close] closes it. Dial blocks and fails as
// NewSession does, with [ErrConfig] also for an address that is a URL (see [DialURL]) or has no port, TLS on
// one side only, and refused options. To find out about TLS it may take half a second more than ctx, a second
// if a server answers, but slowly.
func Dial(ctx context.Context, opt rueidis.ClientOption, cfg Config) (*Session, error) {
	return dial(ctx, opt, cfg, connect.Options)
}

func dial(ctx context.Context, opt rueidis.ClientOption, cfg Config, words connect.Words) (*Session, error) {
	if ctx == nil {
		return nil, fmt.Errorf("dial: %w", api.ErrNilContext)
	}
	if err := checkAddresses(opt); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	checked, err := cfg.checked()
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	opt = suited(opt, checked.Replicas > 0)
	dialing, done := context.WithCancelCause(ctx)
	conn := script.NewConnection()
	direct, scout := script.NewDirect(conn, opt, dialler(opt)), script.NewScout(conn, opt, dialler(opt))
	var dialled atomic.Bool
	hurried, calm := connect.Hurry(ctx, opt)
	hurried.DialCtxFn = dialWithin(dialing, hurried, conn, &dialled)
	client, err := rueidis.NewClient(hurried)
	calm()
	done(errMade)
	if err != nil {
		conn.Sever() // a Cluster's client goes on for a while
	}
	switch {
	case err != nil && !dialled.Load(): // nor did it look for a server
		return nil, fmt.Errorf("dial: %w: the client refuses what %s asks for: %w", ErrConfig, words.Source, err)
	case err != nil:
		return nil, fmt.Errorf("dial: %w", connect.Explain(ctx, opt, err, words))
	}
	if client.Mode() != rueidis.ClientModeStandalone {
		direct = nil
	}
	s, err := engine.New(ctx, client, checked, redis.Options{Version: Version,
		Connection: conn, OwnsClient: true, Direct: direct, Scout: scout})
	return (*Session)(s), err
}

// suited returns opt with the settings that locks run best with, where replicas says that they wait for some.
func suited(opt rueidis.ClientOption, replicas bool) rueidis.ClientOption {
	opt.AlwaysPipelining = true
	opt.DisableAutoPipelining = false
	opt.PipelineMultiplex = -1
	opt.DisableCache = true
	opt.ConnLifetime = 0
	// Locks live on primaries, and what a replica knows of them may be old.
	opt.SendToReplicas, opt.ReadNodeSelector = nil, nil
	//lint:ignore SA1019 callers may still set it, and the client refuses it alone
	opt.ReplicaSelector = nil
	opt.Standalone.ReplicaAddress = nil
	if opt.ConnWriteTimeout == 0 {
		opt.ConnWriteTimeout = connTimeout
	}
	if opt.ReadBufferEachConn == 0 {
		opt.ReadBufferEachConn = readBuffer
	}
	if opt.WriteBufferEachConn == 0 {
		opt.WriteBufferEachConn = writeBuffer
	}
	if replicas && opt.BlockingPoolSize == 0 {
		opt.BlockingPoolSize = replicaConns
	}
	if opt.Sentinel.TopologyRefreshInterval == 0 {
		opt.Sentinel.TopologyRefreshInterval = sentinelLook
	}
	return opt
}

// checkAddresses refuses addresses that no server can have. What a dial function of the caller's makes of
// an address is its own.
func checkAddresses(opt rueidis.ClientOption) error {
	if len(opt.InitAddress) == 0 {
		return fmt.Errorf("%w: InitAddress is empty; it must name a server", ErrConfig)
	}
	for _, addr := range opt.InitAddress {
		if strings.Contains(addr, "://") { // it may have a password, and is not repeated
			return fmt.Errorf("%w: an address is a URL; it must be host:port; DialURL takes URLs", ErrConfig)
		}
		if opt.DialCtxFn != nil || opt.DialFn != nil {
			continue
		}
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return fmt.Errorf("%w: the address %.100q must be host:port, such as localhost:6379, or [::1]:6379", ErrConfig, addr)
		}
	}
	return nil
}

// errMade ends the context of what is dialled for the making of a client, once that is over.
var errMade = errors.New("the client is made")

// dialWithin returns opt's way of dialling, except that what is dialled while ctx lives ends
// with it, a connection whose greeting is not answered too: rueidis.NewClient takes no context. Dial ends ctx by errMade
// afterwards, so connections that stand, or are made later, are their own, until Close severs them. A later one means
// that the former was lost, so it is told to conn. The first one sets dialled.
func dialWithin(ctx context.Context, opt rueidis.ClientOption, conn *script.Connection, dialled *atomic.Bool) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	dial := dialler(opt)
	return func(own context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		dialled.Store(true)
		bound, making := conn.Life(), context.Cause(ctx) != errMade
		aside := script.IsAside(own)
		switch {
		case making:
			bound = ctx
		case !aside:
			conn.Redialled()
		}
		own, cancel := context.WithCancel(own)
		defer cancel()
		defer context.AfterFunc(bound, cancel)()
		c, err := dial(own, addr, d, tc)
		if err != nil {
			return nil, script.Unmade(addr, err)
		}
		if opt.DisableTCPNoDelay {
			delay(c)
		}
		if aside {
			return conn.Keep(c), nil
		}
		c = conn.Watch(c)
		if making {
			context.AfterFunc(ctx, func() {
				if context.Cause(ctx) != errMade {
					_ = c.Close()
				}
			})
		}
		return c, nil
	}
}

// delay has what is written to c wait for more, which rueidis does only to a connection that it knows.
func delay(c net.Conn) {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapped.NetConn() // of TLS
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(false)
	}
}

// dialler returns opt's way of dialling. One of the caller's has as long as the client's own: rueidis gives it the context of
// the command that comes first, which may have no end, and of a subscription none, and all others wait for that connection.
func dialler(opt rueidis.ClientOption) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	given, old := opt.DialCtxFn, opt.DialFn
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		switch {
		case given != nil:
			if d.Timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, d.Timeout)
				defer cancel()
			}
			return given(ctx, addr, d, tc)
		case old != nil:
			return old(addr, d, tc)
		case tc != nil:
			return (&tls.Dialer{NetDialer: d, Config: tc}).DialContext(ctx, "tcp", addr)
		default:
			return d.DialContext(ctx, "tcp", addr)
		}
	}
}
