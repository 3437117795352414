package faulttest

import (
	"time"
)

// reply is something on its way to the client.
type reply struct {
	raw   []byte
	cut   bool          // in place of bytes: the end of the connection
	until time.Time     // not before
	hold  chan struct{} // not before it is closed; nil for at once
}

// locals queues the proxy's own answers whose turn has come. c.mu is held.
func (c *conn) locals() {
	for r := c.t.local(); r != nil; r = c.t.local() {
		c.push(*r)
	}
}

// push queues something for the client. c.mu is held.
func (c *conn) push(r reply) {
	c.out = append(c.out, r)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// deliver writes to the client what has been queued for it, each in its time.
func (c *conn) deliver() {
	for c.wait(c.wake) {
		c.mu.Lock()
		batch := c.out
		c.out = nil
		c.mu.Unlock()
		for _, r := range batch {
			if !c.hold(r) || !c.pass() {
				return
			}
			if r.cut {
				c.close()
				return
			}
			// A client that has gone away does not end the connection: the
			// commands that it has sent are still to reach the server.
			_, _ = c.client.Write(r.raw)
		}
	}
}

// hold waits until the reply may pass. It returns false when the connection is
// closed before.
func (c *conn) hold(r reply) bool {
	if r.hold != nil && !c.wait(r.hold) {
		return false
	}
	if r.until.IsZero() {
		return true
	}
	timer := time.NewTimer(time.Until(r.until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.dead:
		return false
	}
}
