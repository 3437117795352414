package proxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// parcel is something on its way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// conn is one client's connection and the one to the server that belongs to it.
type conn struct {
	p              *Proxy
	client, server net.Conn
	in             io.Reader     // of the client; may have read ahead
	torn           atomic.Bool   // bytes of it were lost
	dead           chan struct{} // closed when nothing is to be delivered any more
	once           sync.Once
}

func newConn(p *Proxy, client net.Conn, in io.Reader, server net.Conn) *conn {
	return &conn{p: p, client: client, server: server, in: in, dead: make(chan struct{})}
}

// abort ends both sides, as a reset does.
func (c *conn) abort() {
	c.once.Do(func() { close(c.dead) })
	reset(c.client)
	reset(c.server)
}

// forsake ends the client's side.
func (c *conn) forsake() { reset(c.client) }

func reset(n net.Conn) {
	if t, ok := n.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // a RST in place of a FIN
	}
	_ = n.Close()
}

// run carries both directions until both have ended.
func (c *conn) run() {
	var wg sync.WaitGroup
	wg.Go(func() {
		c.carry(c.in, c.server, func(r Rule) (time.Duration, bool) { return r.Up, r.CutUp })
		_ = c.server.Close()
	})
	wg.Go(func() {
		c.carry(c.server, c.client, func(r Rule) (time.Duration, bool) { return r.Down, r.CutDown })
		_ = c.client.Close()
	})
	wg.Wait()
	c.once.Do(func() { close(c.dead) })
}

// carry moves bytes in one direction until from has ended and all has been delivered.
func (c *conn) carry(from io.Reader, to io.Writer, of func(Rule) (time.Duration, bool)) {
	// Enough for all that a client sends in a few seconds; beyond it TCP makes it wait.
	road := make(chan parcel, 1<<14)
	var wg sync.WaitGroup
	wg.Go(func() { c.deliver(road, to) })
	defer wg.Wait()
	defer close(road)
	buf := make([]byte, 64<<10)
	lost := false
	for {
		n, err := from.Read(buf)
		if n > 0 {
			delay, cut := of(c.p.current())
			if cut {
				lost = true // the other direction goes on, as in a network
				c.torn.Store(true)
			}
			if !lost {
				select {
				case road <- parcel{append([]byte(nil), buf[:n]...), time.Now().Add(delay)}:
				case <-c.dead:
					return
				}
			}
			c.p.taken.Add(int64(n))
		}
		if err != nil {
			return
		}
	}
}

// deliver writes what is on the road, each parcel when it is due, in order.
func (c *conn) deliver(road <-chan parcel, to io.Writer) {
	failed := false
	for p := range road {
		if failed {
			continue // the sender must not wait for ever
		}
		if wait := time.Until(p.due); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-c.dead:
				timer.Stop()
				failed = true
				continue
			}
		}
		if _, err := to.Write(p.bytes); err != nil {
			failed = true
		}
	}
}
