package script

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
)

// Direct is a second connection, for the one who is alone: a command is written and its reply
// read by the goroutine that calls. On a pipelining connection each command costs two changes
// of goroutine, which is more than all else that the client does for it.
//
// Redis executes what comes over two connections in any order, and on one a release runs behind
// what it releases. To keep that, the direct connection is used only while nothing is on its way
// over the other, nor may be that was given up; and what is sent over the other waits for a call
// on the direct one that was given up, until Redis has dealt with it. What may speak of another
// goroutine's call, as a clean-up does, waits for each.
type Direct struct {
	conn *Connection
	opt  rueidis.ClientOption
	dial DialFunc

	// set by Runner.UseDirect
	proves     func(context.Context, rueidis.Client) bool
	background *life.Group

	link     atomic.Pointer[link] // nil: none is ready
	underWay chan struct{}        // of size 1: full while a call is, or was given up and may still be executed
	left     atomic.Bool          // that call was given up
	over     atomic.Bool          // no connection is made any more

	mu      sync.Mutex // guards what follows, and changes of over
	dialing bool
	next    time.Time // no dial before
}

// DialFunc makes a connection, as rueidis.ClientOption.DialCtxFn does.
type DialFunc func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

const (
	// dialPause is between two dials at least: a caller whose context ends often costs no more.
	dialPause = 100 * time.Millisecond
	// refusedPause is how long a Direct waits after a dial that failed. The other connection
	// serves meanwhile.
	refusedPause = 5 * time.Second
	// leftPatience is for how long what was given up holds others back, if no answer to it comes.
	// Then the connection is reset: what has not reached Redis by then never does, unless a proxy
	// delivers it late.
	leftPatience = 500 * time.Millisecond
	// provePatience bounds the proof that a connection leads to the session's server.
	provePatience = time.Second
)

// NewDirect returns a Direct that will connect to the first address of opt by dial. It returns
// nil, which stands for none, where opt describes more than one server, or has a client do
// things of its own on a connection.
func NewDirect(conn *Connection, opt rueidis.ClientOption, dial DialFunc) *Direct {
	if !canCheck || opt.Sentinel.MasterSet != "" || opt.Standalone.EnableRedirect || opt.AuthCredentialsFn != nil {
		return nil
	}
	return &Direct{conn: conn, opt: alone(opt), dial: within(conn, opt.Dialer.KeepAlive, dial), underWay: make(chan struct{}, 1)}
}

// alone returns opt for a client of one connection, over which one command goes at a time.
func alone(opt rueidis.ClientOption) rueidis.ClientOption {
	opt.InitAddress, opt.ShuffleInit, opt.ForceSingleClient = opt.InitAddress[:1:1], false, true
	opt.AlwaysPipelining, opt.DisableRetry, opt.OnInvalidations = false, true, nil
	opt.Dialer.KeepAlive = -1 // a PING beside a command would make rueidis pipeline for good
	opt.RingScaleEachConn, opt.ReadBufferEachConn, opt.WriteBufferEachConn = 1, 4<<10, 4<<10
	return opt
}

// within returns dial, which ends with conn, for a client of alone: the socket has the keep-alive
// that was asked for.
func within(conn *Connection, keepAlive time.Duration, dial DialFunc) DialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		own := *d
		own.KeepAlive = keepAlive
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(conn.Life(), cancel)()
		return dial(ctx, addr, &own, tc)
	}
}

// replace takes l out of use, under which nothing is under way, and sees to another one.
func (d *Direct) replace(l *link) {
	d.link.CompareAndSwap(l, nil)
	d.background.Go(func() { l.end(false) }) // it may run the caller's code
	d.renew()
}

// fail ends the call over l whose context has ended, or that got no answer, and returns what the caller
// is told. l is out of use from then on.
func (d *Direct) fail(ctx context.Context, l *link, res rueidis.RedisResult) rueidis.RedisResult {
	d.link.CompareAndSwap(l, nil)
	err := res.NonRedisError()
	if err == nil || ctx.Err() == nil || torn(err) {
		<-d.underWay
		l.end(true)
	} else { // it is under way until Redis has executed it, or can never
		d.left.Store(true)
		d.background.Go(func() {
			l.drain(leftPatience)
			d.left.Store(false)
			<-d.underWay
			l.end(true)
		})
	}
	if err != nil && ctx.Err() != nil {
		return rueidis.NewErrorResult(ctx.Err())
	}
	return res
}

// abandon ends a call over l that does not return: the caller's connection has panicked, or ended the
// goroutine. What rueidis's client counts as under way is so for good, and its Close would wait for that.
func (d *Direct) abandon(l *link) {
	d.link.CompareAndSwap(l, nil)
	_ = l.sever(true)
	<-d.underWay
}

// wait waits until no call is under way, nor one that was given up, or ctx ends.
func (d *Direct) wait(ctx context.Context) error {
	select {
	case d.underWay <- struct{}{}:
		<-d.underWay
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// renew has a connection made in the background, if it is time for one. One may have been made since the
// caller has looked.
func (d *Direct) renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link.Load() != nil || len(d.underWay) > 0 || d.over.Load() || d.dialing || time.Now().Before(d.next) {
		return
	}
	d.dialing = true
	d.background.Go(d.connect)
}

func (d *Direct) connect() {
	l, err := d.open()
	d.mu.Lock()
	d.dialing = false
	d.next = time.Now().Add(dialPause)
	if l == nil {
		d.next = time.Now().Add(refusedPause)
	}
	if errors.Is(err, errNoSocket) { // nor will the next be one
		d.over.Store(true)
	}
	over := d.over.Load()
	if l != nil && !over {
		d.link.Store(l)
	}
	d.mu.Unlock()
	if l != nil && over {
		l.end(false)
	}
}

// open makes a connection and proves that it leads to the session's server. It returns nil if it
// cannot, and the error of the dial.
func (d *Direct) open() (*link, error) {
	l := &link{of: d.conn, doubts: d.conn.Doubts.Load()}
	opt := d.opt
	opt.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, tc *tls.Config) (net.Conn, error) {
		if l.Conn != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: net.ErrClosed} // each link is one connection
		}
		conn, err := d.dial(ctx, addr, dialer, tc)
		if err != nil {
			return nil, err
		}
		return l, l.take(conn)
	}
	client, err := rueidis.NewClient(opt)
	if err != nil {
		l.end(false)
		return nil, err
	}
	l.client = client
	ctx, cancel := context.WithTimeout(d.conn.Life(), provePatience)
	defer cancel()
	if !d.proves(ctx, client) || l.doubts != d.conn.Doubts.Load() {
		l.end(false)
		return nil, nil
	}
	return l, nil
}

// close ends the connection for good.
func (d *Direct) close() {
	d.mu.Lock()
	d.over.Store(true)
	d.mu.Unlock()
	if l := d.link.Swap(nil); l != nil {
		l.end(false)
	}
}
