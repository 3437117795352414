package faulttest

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// conn is one client's connection and the one to the server that belongs to it.
// Three goroutines serve it: requests reads from the client and writes to the
// server, answers reads from the server, deliver writes to the client. The last
// two are apart so that a reply that is held back does not keep the proxy from
// seeing that the server has answered.
type conn struct {
	p      *Proxy
	client net.Conn
	dead   chan struct{} // closed by close

	mu     sync.Mutex // guards what follows
	server net.Conn   // nil until dialed
	closed bool
	t      tracker
	out    []reply
	wake   chan struct{} // of size 1: something was added to out
}

func newConn(p *Proxy, client net.Conn) *conn {
	return &conn{p: p, client: client, dead: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// close ends the connection on both sides at once. It may be called again.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	close(c.dead)
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

// run serves the connection until it is closed.
func (c *conn) run() {
	defer func() {
		c.close()
		c.p.mu.Lock()
		delete(c.p.conns, c)
		c.p.mu.Unlock()
	}()
	if !c.dial() {
		return
	}
	var wg sync.WaitGroup
	wg.Go(c.answers)
	wg.Go(c.deliver)
	c.requests()
	wg.Wait()
}

func (c *conn) dial() bool {
	if !c.pass() {
		return false
	}
	server, err := c.p.dial()
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = server.Close()
		return false
	}
	c.server = server
	return true
}

// pass waits while the network is silent. It returns false when the connection
// is closed.
func (c *conn) pass() bool {
	for {
		c.p.mu.Lock()
		gate := c.p.gate
		c.p.mu.Unlock()
		select {
		case <-c.dead:
			return false
		default:
		}
		select {
		case <-gate:
			return true
		default:
		}
		if !c.wait(gate) {
			return false
		}
	}
}

// wait waits for the channel, and returns false when the connection is closed
// before.
func (c *conn) wait(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	case <-c.dead:
		return false
	}
}

// requests forwards the client's commands until the client goes away.
func (c *conn) requests() {
	d := &decoder{r: bufio.NewReader(c.client)}
	for {
		cmd, raw, err := d.command()
		if err != nil {
			c.complain(err)
			// Only half a close: the server is to run what it has been sent, and
			// closes its side then. What is sent in memory it has read.
			if tcp, ok := c.server.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			} else {
				_ = c.server.Close()
			}
			return
		}
		if !c.pass() {
			return
		}
		if len(cmd) > 0 {
			if forward, alive := c.request(cmd); !alive {
				return
			} else if !forward {
				continue
			}
		}
		if _, err := c.server.Write(raw); err != nil {
			return // answers sees it too, and ends the connection
		}
	}
}

// request applies the faults to one command. It returns whether to forward it,
// and whether to go on with the connection.
func (c *conn) request(cmd []string) (forward, alive bool) {
	refusal, r := c.p.requested(cmd)
	switch {
	case refusal != "":
		c.sent(&pending{local: &reply{raw: []byte(refusal)}})
		return false, true
	case r != nil && r.drop:
		c.sent(&pending{local: &reply{cut: true}})
		return false, false
	case r != nil:
		close(r.seen)
		// Silence may have begun in the meantime.
		if !c.wait(r.hold) || !c.pass() {
			return false, false
		}
	}
	// Before it is written: the reply may be here before Write returns.
	c.sent(&pending{cmd: cmd, rule: c.p.forwarded(cmd)})
	return true, true
}

// sent notes a command, and delivers the proxy's own answer if it is its turn.
func (c *conn) sent(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.sent(p)
	c.locals()
}

// answers reads what the server sends, until the server goes away or a reply is
// to be dropped.
func (c *conn) answers() {
	d := &decoder{r: bufio.NewReader(c.server)}
	for {
		v, raw, err := d.next()
		if err != nil {
			c.complain(err)
		}
		if !c.answer(v, raw, err != nil) {
			return
		}
	}
}

// answer queues one value from the server, or the end of the connection, for the
// client, as the faults have it. It returns false when that was the last.
func (c *conn) answer(v value, raw []byte, end bool) bool {
	noMsgs := c.p.dropsMessages()
	c.mu.Lock()
	defer c.mu.Unlock()
	if end {
		c.push(reply{cut: true})
		return false
	}
	p, message := c.t.received(v)
	if message && noMsgs {
		return true
	}
	out := reply{raw: raw}
	if p != nil && p.rule != nil {
		out.hold = p.rule.hold
		if p.rule.instead != "" {
			out.raw = []byte(p.rule.instead)
		}
		if p.rule.delay > 0 {
			out.until = time.Now().Add(p.rule.delay)
		}
		if p.rule.seen != nil {
			close(p.rule.seen)
		}
		if p.rule.drop {
			c.push(reply{cut: true})
			return false
		}
	}
	c.push(out)
	c.locals()
	return true
}

// complain reports bytes that the proxy did not understand, as that makes
// everything else it does wrong.
func (c *conn) complain(err error) {
	if errors.Is(err, errProtocol) {
		c.p.tb.Errorf("proxy of %s: %v", c.p.target, err)
	}
}
